// Convolution on the tensor cores through WMMA: the loop of wmma_loop.h over patches and filters.
#include "kernels/conv/conv_dispatch.h"
#include "kernels/conv/conv_loaders.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/wmma_loop.h"

namespace mp::MP_TARGET {

namespace {

/// Loaders of A and B for a pass, at a tile and a slice of k.
template <class T, mp_conv_op_t op, class Tile>
struct ConvLoaders;

template <class T>
MP_DEVICE const T *elements(const void *tensor, int64_t first) {
  return static_cast<const T *>(in_gmem(tensor)) + first;
}

template <class T, class Tile>
struct ConvLoaders<T, MP_CONV_FPROP, Tile> {
  using A = PatchRowsLoader<T, Tile>;
  using B = FilterRowsLoader<T, Tile>;

  MP_DEVICE ConvLoaders(const ConvArgs &args, const ConvProduct<MP_CONV_FPROP> &x, int64_t m0,
                        int64_t n0, int64_t k0, int64_t)
      : a(x.patches, elements<T>(args.image, x.image_elem()), args.image_is_aligned, m0, k0),
        b(args, elements<T>(args.other, x.filter_elem() + n0 * args.filter_elems), x.n() - n0, k0) {
  }
  A a;
  B b;
};

template <class T, class Tile>
struct ConvLoaders<T, MP_CONV_DGRAD, Tile> {
  using A = PatchRowsLoader<T, Tile>;
  using B = FilterTapsLoader<T, Tile>;

  MP_DEVICE ConvLoaders(const ConvArgs &args, const ConvProduct<MP_CONV_DGRAD> &x, int64_t m0,
                        int64_t n0, int64_t k0, int64_t)
      : a(x.patches, elements<T>(args.image, x.image_elem()), args.image_is_aligned, m0, k0),
        b(x, args.filter_elems, elements<T>(args.other, x.filter_elem() + n0), x.n() - n0, k0) {}
  A a;
  B b;
};

template <class T, class Tile>
struct ConvLoaders<T, MP_CONV_WGRAD, Tile> {
  using A = OperandLoader<T, false, Tile::kM, Tile>;
  using B = PatchColumnsLoader<T, Tile>;

  MP_DEVICE ConvLoaders(const ConvArgs &args, const ConvProduct<MP_CONV_WGRAD> &x, int64_t m0,
                        int64_t n0, int64_t k0, int64_t k_end)
      : a(elements<T>(args.other, x.dy_elem() + k0 * x.dy_ld() + m0), x.dy_ld(), x.m() - m0,
          k_end - k0),
        b(x.patches, elements<T>(args.image, x.image_elem()), args.image_is_aligned, n0, k0,
          k_end) {}
  A a;
  B b;
};

/// Computation of a work tile.  The type is selected at run time, once per tile, like in
/// wgmma_kernel.h.
template <mp_conv_op_t op, class Tile>
class ConvWmma {
  template <class T>
  using Loaders = ConvLoaders<T, op, Tile>;

 public:
  static constexpr size_t kSmemBytes =
      Tile::smem_bytes(Loaders<half>::A::kByK, Loaders<half>::B::kByK);

  MP_DEVICE ConvWmma(const ConvArgs &args, const WorkTile &work)
      : args_(args),
        work_(work),
        product_(args, work.batch_item),
        m0_(work.tile_m * Tile::kM),
        n0_(work.tile_n * Tile::kN),
        k_begin_(min_of(work.slice * args.slice_k, product_.k())),
        k_end_(min_of(k_begin_ + args.slice_k, product_.k())) {}

  MP_DEVICE void run(std::byte *smem) {
    WmmaLoop<Tile> loop;
    loop.clear();
    with_half_type(args_.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      if constexpr (wmma::supported<T, kSmemBytes>()) {
        Loaders<T> load(args_, product_, m0_, n0_, k_begin_, k_end_);
        loop.template multiply_add<T>(smem, load.a, load.b,
                                      ceil_div(k_end_ - k_begin_, int64_t{Tile::kK}));
      }
    });
    EpilogueWriter writer(args_.out, 0);
    const bool is_split = args_.partial_sums != nullptr, is_fp32 = args_.out.dtype == MP_FP32;
    // Eight columns may span several taps of dfilter (FilterRuns).
    const bool is_in_fours = op == MP_CONV_WGRAD && args_.written.padded.divisor % kVec != 0;
    const bool by_four = is_split || is_fp32 || is_in_fours;
    loop.store_tile(smem, by_four, [&]<int kRun>(int row, int col, float(&x)[kRun]) {
      const OutputCoord to = product_.template place<kRun>(m0_ + row, n0_ + col);
      if (to.valid <= 0) return;
      if (kRun == kQuad && is_split)
        store_vector(partial_sum(args_.partial_sums, args_.out, work_.slice, 0, to.row, to.col), x,
                     to.valid);
      else
        writer.write(to.row, to.col, x, to.valid);
    });
    writer.finish();
  }

 private:
  const ConvArgs &args_;
  const WorkTile work_;
  const ConvProduct<op> product_;
  const int64_t m0_, n0_;
  const int64_t k_begin_, k_end_;
};

template <mp_conv_op_t op, class Tile>
MP_KERNEL(Tile::kThreads, Tile::kMinBlocks)
conv_wmma(MP_PARAM(ConvArgs) args) {
  using Conv = ConvWmma<op, Tile>;
  if constexpr (wmma::supported<half, Conv::kSmemBytes>()) {
    MP_DYN_SHARED(std::byte, smem);
    const int64_t num_work_tiles = args.scheduler.num_work_tiles();
    for (int64_t number = block_index(); number < num_work_tiles; number += grid_size()) {
      if (number != block_index()) block_sync();  // the previous epilogue still uses smem
      Conv(args, args.scheduler(number)).run(smem);
    }
  }
}

}  // namespace

void launch_conv_wmma(const ConvPlan &plan, mp_conv_op_t op, const Device &device,
                      const ConvArgs &args, mp_stream_t stream) {
  with_conv_op(op, [&](auto pass) {
    constexpr mp_conv_op_t kPass = decltype(pass)::value;
    with_tile(WmmaTiles{}, *plan.gemm.kernel, [&](auto found) {
      using Tile = typename decltype(found)::type;
      const LaunchShape shape{min_of(args.scheduler.num_work_tiles(), kMaxBlocks), Tile::kThreads,
                              ConvWmma<kPass, Tile>::kSmemBytes};
      launch(plan.name, conv_wmma<kPass, Tile>, device, shape, stream, args);
    });
  });
}

}  // namespace mp::MP_TARGET
