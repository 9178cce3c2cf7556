// D = epilogue(op(A) op(B)) on the CUDA cores: the loop of simt_loop.h over matrices.
//
// Used for fp32 layers, and as the last row of the kernel table, because it runs every problem.
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/gemm_work.h"
#include "kernels/gemm/simt_loop.h"

namespace mp::MP_TARGET {

namespace {

struct MatrixSource {
  const void *matrix;
  mp_dtype_t dtype_ab;
  int64_t ld;
  int64_t mn;  ///< elements of m or n
  bool by_k;

  MP_DEVICE mp_dtype_t dtype() const { return dtype_ab; }
  MP_DEVICE int64_t extent() const { return mn; }

  using XCoord = int64_t;
  MP_DEVICE XCoord x_coord(int64_t x) const { return x; }

  using Cursor = NoCursor;
  MP_DEVICE Cursor cursor(int64_t) const { return {}; }
  MP_DEVICE void advance(Cursor &, int) const {}

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], int64_t x, Cursor, int64_t k, int64_t k_end) const {
    const int64_t row = by_k ? x : k, col = by_k ? k : x;
    const int64_t rows = by_k ? mn : k_end, cols = by_k ? k_end : mn;
    const int64_t valid = row < rows ? min_of<int64_t>(max_of<int64_t>(cols - col, 0), kVec) : 0;
    load_vector(values, static_cast<const T *>(matrix) + (valid > 0 ? row * ld + col : 0),
                static_cast<int>(valid));
  }
};

template <class Tile>
using Loop = SimtLoop<Tile, MatrixSource, MatrixSource>;

template <class Tile>
MP_DEVICE void gemm_tile(const GemmArgs &args, const GemmWork &work, float *smem) {
  const GemmProblem &p = args.problem;
  const MatrixSource a{item_address(p.a, p.dtype_ab, work.batch_item), p.dtype_ab, p.a.ld,
                       work.m_end, p.op_a == MP_OP_N};
  const MatrixSource b{item_address(p.b, p.dtype_ab, work.batch_item), p.dtype_ab, p.b.ld, p.out.n,
                       p.op_b == MP_OP_T};
  Loop<Tile> loop;
  loop.multiply(smem, a, b, work.m0, work.n0, work.k0, work.k_end);
  EpilogueWriter writer(p.out, work.batch_item, work.k0 < work.k_end);
  loop.store_tile([&](int r, int c, float(&x)[kQuad]) {
    const int64_t row = work.m0 + r, col = work.n0 + c;
    const int valid = static_cast<int>(min_of<int64_t>(p.out.n - col, kQuad));
    if (valid <= 0 || row >= work.m_end) return;
    if (args.partial_sums != nullptr)
      store_vector(partial_sum(args.partial_sums, p.out, work.slice, work.batch_item, row, col), x,
                   valid);
    else
      writer.write(row, col, x, valid);
  });
  writer.finish();
}

/// True if the tile has registers to spare for the ends of mp_gemm_ragged.  The largest tile has
/// none, so its ragged kernel is a separate instance.
template <class Tile>
constexpr bool kSparesRegisters = !std::is_same_v<Tile, TileShape<GemmTile::simt_128x128x16>>;

template <class Tile, bool kMayBeRagged>
MP_KERNEL(Tile::kThreads, kMayBeRagged && !kSparesRegisters<Tile> ? 1 : Tile::kMinBlocks)
gemm_simt(MP_PARAM(GemmArgs) args) {
  MP_SHARED(Quad, smem, [Loop<Tile>::kSmemFloats / kQuad]);
  const bool is_ragged = kMayBeRagged && args.ends != nullptr;
  const int64_t num_work_tiles = args.scheduler.num_work_tiles();
  for (int64_t number = block_index(); number < num_work_tiles; number += grid_size()) {
    const GemmWork work = gemm_work<Tile>(args, number, is_ragged);
    if (is_ragged && work.is_none()) break;
    gemm_tile<Tile>(args, work, smem[0].x);
  }
}

template <class Tile>
void launch_tile(const char *name, const Device &device, const GemmArgs &args, mp_stream_t stream) {
  const LaunchShape shape{min_of(args.scheduler.num_work_tiles(), kMaxBlocks), Tile::kThreads};
  if constexpr (!kSparesRegisters<Tile>) {
    if (args.ends == nullptr)
      return launch(name, gemm_simt<Tile, false>, device, shape, stream, args);
  }
  launch(name, gemm_simt<Tile, true>, device, shape, stream, args);
}

}  // namespace

void launch_simt(const GemmPlan &plan, const Device &device, const GemmArgs &args,
                 mp_stream_t stream) {
  with_tile(SimtTiles{}, *plan.kernel, [&]<class Tile>(std::type_identity<Tile>) {
    launch_tile<Tile>(plan.name, device, args, stream);
  });
}

}  // namespace mp::MP_TARGET
