// D = epilogue(op(A) op(B)) on the CUDA cores: any input type, multiplied and added in fp32.
//
// For layers that are kept in fp32, and the last row of the table: it runs everything.  A block
// computes a kM x kN tile of D; every thread keeps 8 x 8 sums in registers and reads 8 + 8 values
// of smem per k.  The next k-tile is fetched into registers while this one is multiplied.
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm.h"

namespace mp::MP_TARGET {

namespace {

/// One operand: fetches a tile of kExtent (rows or columns of D) x kK into registers, in runs of
/// 8 along the direction that is contiguous in gmem, and puts it into smem as [k][extent].
template <int kExtent, int kK, int kThreads>
class OperandTile {
 public:
  static constexpr int kElems = kK * kExtent;

  MP_DEVICE OperandTile(const void *matrix, mp_dtype_t dtype, int64_t ld, bool k_is_contiguous)
      : matrix_(matrix), dtype_(dtype), ld_(ld), k_is_contiguous_(k_is_contiguous) {}

  /// Elements [x0, x_end) x [k0, k_end) of the operand, zero beyond.
  MP_DEVICE void fetch(int64_t x0, int64_t x_end, int64_t k0, int64_t k_end) {
    MP_UNROLL
    for (int i = 0; i < kRuns; i++) {
      const Run run = run_of(i);
      const int64_t x = x0 + run.x, k = k0 + run.k;
      const int64_t row = k_is_contiguous_ ? x : k;
      const int64_t col = k_is_contiguous_ ? k : x;
      const int64_t rows = k_is_contiguous_ ? x_end : k_end;
      const int64_t cols = k_is_contiguous_ ? k_end : x_end;
      const int64_t valid = row < rows ? min_of<int64_t>(max_of<int64_t>(cols - col, 0), kVec) : 0;
      load_run(values_[i], dtype_, matrix_, valid > 0 ? row * ld_ + col : 0,
               static_cast<int>(valid));
    }
  }

  MP_DEVICE void put(float *smem) const {
    MP_UNROLL
    for (int i = 0; i < kRuns; i++) {
      const Run run = run_of(i);
      const int step = k_is_contiguous_ ? kExtent : 1;
      MP_UNROLL
      for (int j = 0; j < kVec; j++) smem[run.k * kExtent + run.x + j * step] = values_[i][j];
    }
  }

 private:
  struct Run {
    int x, k;
  };
  static constexpr int kRuns = kExtent * kK / kVec / kThreads;
  static_assert(kRuns * kVec * kThreads == kExtent * kK);

  MP_DEVICE Run run_of(int i) const {
    const int number = i * kThreads + thread_index();
    // Neighbouring lanes take neighbouring runs of gmem.  With k contiguous that scatters their
    // stores over smem rows, so there x goes fastest instead: stores without bank conflicts, and
    // the half-used sectors of gmem are used by the next run.
    if (k_is_contiguous_) return {number % kExtent, number / kExtent * kVec};
    return {number % (kExtent / kVec) * kVec, number / (kExtent / kVec)};
  }

  const void *matrix_;
  mp_dtype_t dtype_;
  int64_t ld_;
  bool k_is_contiguous_;
  float values_[kRuns][kVec];
};

template <class Tile>
MP_DEVICE void multiply_stage(const float *a, const float *b, float (&acc)[kVec][kVec]) {
  constexpr int kColumns = Tile::kN / kVec;
  const int m = thread_index() / kColumns * kVec, n = thread_index() % kColumns * kVec;
  for (int k = 0; k < Tile::kK; k++) {
    float row[kVec];
    MP_UNROLL
    for (int j = 0; j < kVec; j++) row[j] = b[k * Tile::kN + n + j];
    MP_UNROLL
    for (int i = 0; i < kVec; i++) multiply_add8(acc[i], a[k * Tile::kM + m + i], row);
  }
}

template <class Tile>
MP_DEVICE void store_tile(const GemmProblem &p, const WorkItem &work, float (&acc)[kVec][kVec]) {
  constexpr int kColumns = Tile::kN / kVec;
  const int64_t row0 = work.tile_m * Tile::kM + thread_index() / kColumns * kVec;
  const int64_t col = work.tile_n * Tile::kN + thread_index() % kColumns * kVec;
  const int valid = static_cast<int>(min_of<int64_t>(p.n - col, kVec));
  EpilogueWriter writer(p, work.batch_item);
  // Not unrolled, and rows moved up, for the reason given in gemm_wmma.h.
  MP_NO_UNROLL
  for (int i = 0; i < kVec; i++) {
    if (valid > 0 && row0 + i < p.m) writer.write(row0 + i, col, acc[0], valid);
    MP_UNROLL
    for (int r = 0; r + 1 < kVec; r++) {
      MP_UNROLL
      for (int j = 0; j < kVec; j++) acc[r][j] = acc[r + 1][j];
    }
  }
  writer.finish();
}

template <class Tile>
MP_DEVICE void gemm_tile(const GemmProblem &p, const WorkItem &work, float *smem) {
  using TileA = OperandTile<Tile::kM, Tile::kK, Tile::kThreads>;
  using TileB = OperandTile<Tile::kN, Tile::kK, Tile::kThreads>;
  constexpr int kStage = TileA::kElems + TileB::kElems;
  TileA a(item_address(p.a, p.dtype_ab, work.batch_item), p.dtype_ab, p.a.ld, p.op_a == MP_OP_N);
  TileB b(item_address(p.b, p.dtype_ab, work.batch_item), p.dtype_ab, p.b.ld, p.op_b == MP_OP_T);
  const auto fetch = [&](int64_t k0) {
    a.fetch(work.tile_m * Tile::kM, p.m, k0, p.k);
    b.fetch(work.tile_n * Tile::kN, p.n, k0, p.k);
  };
  const auto put = [&](int stage) {
    a.put(smem + stage * kStage);
    b.put(smem + stage * kStage + TileA::kElems);
  };

  float acc[kVec][kVec] = {};
  fetch(0);
  put(0);
  block_sync();
  int stage = 0;
  for (int64_t k0 = 0; k0 < p.k; k0 += Tile::kK, stage ^= 1) {
    const bool more = k0 + Tile::kK < p.k;
    if (more) fetch(k0 + Tile::kK);
    multiply_stage<Tile>(smem + stage * kStage, smem + stage * kStage + TileA::kElems, acc);
    if (more) put(stage ^ 1);
    block_sync();
  }
  store_tile<Tile>(p, work, acc);
}

template <class Tile>
MP_KERNEL(Tile::kThreads, 1)
gemm_simt(MP_PARAM(GemmArgs) args) {
  MP_SHARED(float, smem, [2 * Tile::kK * (Tile::kM + Tile::kN)]);
  const int64_t num_items = args.schedule.num_items();
  for (int64_t number = block_index(); number < num_items; number += grid_size())
    gemm_tile<Tile>(args.problem, args.schedule(number), smem);
}

template <class Tile>
void launch_tile(const char *name, const Device &device, const GemmArgs &args, mp_stream_t stream) {
  const LaunchShape shape{min_of(args.schedule.num_items(), kMaxBlocks), Tile::kThreads};
  launch(name, gemm_simt<Tile>, device, shape, stream, args);
}

}  // namespace

void launch_simt(const GemmChoice &choice, const Device &device, const GemmArgs &args,
                 mp_stream_t stream) {
  if (choice.kernel->tile == GemmTile::simt_128x128)
    launch_tile<SimtTile128x128>(choice.name, device, args, stream);
  else
    launch_tile<SimtTile64x64>(choice.name, device, args, stream);
}

}  // namespace mp::MP_TARGET
