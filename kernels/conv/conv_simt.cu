// Convolution on the CUDA cores: the loop of simt_loop.h over patches and filters.
//
// For layers that stay in fp32; it supports all other convolutions too.
#include "kernels/conv/conv_args.h"
#include "kernels/conv/skinny_loops.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/simt_loop.h"

namespace mp::MP_TARGET {

namespace {

/// Operand tensor whose type is known at run time.
struct Tensor {
  mp_dtype_t dtype;
  const void *base;

  MP_DEVICE Tensor(const void *tensor, mp_dtype_t type, int64_t first_elem)
      : dtype(type),
        base(static_cast<const char *>(in_gmem(tensor)) + first_elem * dtype_bytes(type)) {}

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const Span8 &span) const {
    const T *const elems = static_cast<const T *>(base);
    if (span.first <= 0) {
      const int valid = max_of(span.end, 0);
      return load_vector(values, elems + (valid > 0 ? span.offset : 0), valid);
    }
    // Row of taps that begins to the left of the image.
    MP_UNROLL
    for (int i = 0; i < kVec; i++)
      values[i] = span.first <= i && i < span.end ? to_float(elems[span.offset + i]) : 0.0f;
  }
};

/// Base of sources whose k is a tap and a channel.
struct AlongTaps {
  const Tensor tensor;
  const TapSegments &segments;

  MP_DEVICE mp_dtype_t dtype() const { return tensor.dtype; }

  using Cursor = TapPosition;
  MP_DEVICE Cursor cursor(int64_t k) const { return {segments, k}; }
  MP_DEVICE void advance(Cursor &at, int count) const { at.advance(segments, count); }
};

/// Base of sources whose k is a pixel.
struct AlongPixels {
  const Tensor tensor;

  MP_DEVICE mp_dtype_t dtype() const { return tensor.dtype; }

  using Cursor = NoCursor;
  MP_DEVICE Cursor cursor(int64_t) const { return {}; }
  MP_DEVICE void advance(Cursor &, int) const {}
};

/// Source of patches; x is a row of the im2col operand.
struct PatchRows : AlongTaps {
  static constexpr bool by_k = true;
  const PatchMap &patches;

  MP_DEVICE int64_t extent() const { return patches.num_rows; }

  using XCoord = PatchOrigin;
  MP_DEVICE XCoord x_coord(int64_t x) const { return patches.origin(x); }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const XCoord &origin, const Cursor &at, int64_t,
                      int64_t) const {
    tensor.load<T>(values, patches.span(origin, at));
  }
};

/// Source of patches; x is a column of the im2col operand.
struct PatchColumns : AlongPixels {
  static constexpr bool by_k = false;
  const PatchMap &patches;

  MP_DEVICE int64_t extent() const { return patches.segments.extent(); }

  using XCoord = PatchTap;
  MP_DEVICE XCoord x_coord(int64_t x) const { return patches.tap({patches.segments, x}); }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const XCoord &at, Cursor, int64_t k,
                      int64_t k_end) const {
    const bool inside = k < k_end && at.valid > 0;
    tensor.load<T>(values, inside ? patches.span(patches.origin(k), at) : Span8{0, 0, 0});
  }
};

/// Source of the filter; x is an output channel.
struct FilterRows : AlongTaps {
  static constexpr bool by_k = true;
  const ConvArgs &args;

  MP_DEVICE int64_t extent() const { return args.group_k; }

  using XCoord = int32_t;  ///< x; negative: out of bounds
  MP_DEVICE XCoord x_coord(int64_t x) const { return x < extent() ? static_cast<int32_t>(x) : -1; }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], XCoord row, const Cursor &at, int64_t, int64_t) const {
    const int64_t offset = row * args.filter_elems + args.filter.offset(at) + at.elem;
    tensor.load<T>(values, {offset, 0, row >= 0 ? at.valid(segments) : 0});
  }
};

/// Up to kVec adjacent channels from x on.
struct Channels {
  int64_t first;
  int valid;

  Channels() = default;
  MP_DEVICE Channels(int64_t x, int64_t extent)
      : first(x), valid(static_cast<int>(min_of<int64_t>(extent - x, kVec))) {}
};

/// Source of the filter; x is an input channel.
struct FilterTaps : AlongTaps {
  static constexpr bool by_k = false;
  const ConvProduct<MP_CONV_DGRAD> &product;
  const int64_t filter_elems;

  MP_DEVICE int64_t extent() const { return product.n(); }

  using XCoord = Channels;
  MP_DEVICE XCoord x_coord(int64_t x) const { return {x, extent()}; }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const XCoord &channels, const Cursor &at, int64_t,
                      int64_t) const {
    const int64_t offset = at.elem * filter_elems + product.filter.offset(at) + channels.first;
    tensor.load<T>(values, {offset, 0, at.valid(segments) > 0 ? channels.valid : 0});
  }
};

/// Source of dy; x is an output channel.
struct OutputGradient : AlongPixels {
  static constexpr bool by_k = false;
  const int64_t ld, channels;

  MP_DEVICE int64_t extent() const { return channels; }

  using XCoord = Channels;
  MP_DEVICE XCoord x_coord(int64_t x) const { return {x, extent()}; }

  template <class T>
  MP_DEVICE void load(float (&values)[kVec], const XCoord &at, Cursor, int64_t k,
                      int64_t k_end) const {
    tensor.load<T>(values, {k * ld + at.first, 0, k < k_end ? at.valid : 0});
  }
};

/// Sources of A and B.
template <class A_, class B_>
struct Sources {
  using A = A_;
  using B = B_;
  A a;
  B b;
};

template <mp_conv_op_t op>
using SourcesOf =
    std::conditional_t<op == MP_CONV_FPROP, Sources<PatchRows, FilterRows>,
                       std::conditional_t<op == MP_CONV_DGRAD, Sources<PatchRows, FilterTaps>,
                                          Sources<OutputGradient, PatchColumns>>>;

/// Returns the sources of A and B of a pass.
template <mp_conv_op_t op>
MP_DEVICE SourcesOf<op> sources_of(const ConvArgs &args, const ConvProduct<op> &x) {
  if constexpr (op == MP_CONV_WGRAD) {
    const int64_t ld = x.dy_ld(), channels = x.m();
    return {{{{args.other, args.dtype, x.dy_elem()}}, ld, channels},
            {{{args.image, args.dtype, x.image_elem()}}, x.patches}};
  } else {
    const PatchRows a{{{args.image, args.dtype, x.image_elem()}, x.patches.segments}, x.patches};
    const int64_t elems = args.filter_elems;
    const Tensor filter(args.other, args.dtype, x.filter_elem());
    if constexpr (op == MP_CONV_FPROP)
      return {a, {{filter, args.patches.segments}, args}};
    else
      return {a, {{filter, x.patches.segments}, x, elems}};
  }
}

template <class Tile, class A, class B>
struct LoopOf : std::type_identity<SimtLoop<Tile, A, B>> {};
using ColumnTile = TileShape<GemmTile::simt_128x16x16>;
template <class A, class B>
struct LoopOf<ColumnTile, A, B> : std::type_identity<SkinnyNLoop<ColumnTile, A, B>> {};
using RowTile = TileShape<GemmTile::simt_16x128x16>;
template <class A, class B>
struct LoopOf<RowTile, A, B> : std::type_identity<SkinnyMLoop<RowTile, A, B>> {};

template <mp_conv_op_t op, class Tile>
using Loop = typename LoopOf<Tile, typename SourcesOf<op>::A, typename SourcesOf<op>::B>::type;

template <mp_conv_op_t op, class Tile>
MP_DEVICE void convolve_tile(const ConvArgs &args, const WorkTile &work, float *smem) {
  const ConvProduct<op> product(args, work.batch_item);
  const SourcesOf<op> sources = sources_of(args, product);
  const int64_t m0 = work.tile_m * Tile::kM, n0 = work.tile_n * Tile::kN;
  const int64_t k0 = min_of(work.slice * args.slice_k, product.k());
  const int64_t k_end = min_of(k0 + args.slice_k, product.k());
  Loop<op, Tile> loop;
  loop.multiply(smem, sources.a, sources.b, m0, n0, k0, k_end);
  EpilogueWriter writer(args.out, 0);
  loop.store_tile([&]<int kRun>(int row, int col, float(&x)[kRun]) {
    const OutputCoord to = product.template output_coord<kRun>(m0 + row, n0 + col);
    if (to.valid <= 0) return;
    if (args.partial_sums != nullptr)
      store_vector(partial_sum(args.partial_sums, args.out, work.slice, 0, to.row, to.col), x,
                   to.valid);
    else
      writer.write(to.row, to.col, x, to.valid);
  });
  writer.finish();
}

/// Minimum number of blocks per SM.  fprop has cursors along the taps for both operands, for which
/// two blocks of 128 x 128 leave too few registers.  Six blocks of 64 x 64 have enough.
template <mp_conv_op_t op, class Tile>
[[maybe_unused]] constexpr int kMinBlocks =
    op == MP_CONV_FPROP                                        ? 1
    : std::is_same_v<Tile, TileShape<GemmTile::simt_64x64x16>> ? 6
                                                               : Tile::kMinBlocks;

template <mp_conv_op_t op, class Tile>
MP_KERNEL((Loop<op, Tile>::kThreads), (kMinBlocks<op, Tile>))
conv_simt(MP_PARAM(ConvArgs) args) {
  constexpr int kSmemQuads = Loop<op, Tile>::kSmemFloats / kQuad;
  MP_SHARED(Quad, smem, [kSmemQuads]);
  const int64_t num_work_tiles = args.scheduler.num_work_tiles();
  for (int64_t number = block_index(); number < num_work_tiles; number += grid_size())
    convolve_tile<op, Tile>(args, args.scheduler(number), smem[0].x);
}

template <mp_conv_op_t op, class Tile>
void launch_tile(const char *name, const Device &device, const ConvArgs &args, mp_stream_t stream) {
  const LaunchShape shape{min_of(args.scheduler.num_work_tiles(), kMaxBlocks),
                          Loop<op, Tile>::kThreads};
  launch(name, conv_simt<op, Tile>, device, shape, stream, args);
}

template <mp_conv_op_t op>
using SimtTilesOf = std::conditional_t<op == MP_CONV_WGRAD, WgradSimtTiles, ConvSimtTiles>;

}  // namespace

void launch_conv_simt(const ConvPlan &plan, mp_conv_op_t op, const Device &device,
                      const ConvArgs &args, mp_stream_t stream) {
  with_conv_op(op, [&]<mp_conv_op_t kOp>(Value<kOp>) {
    with_tile(SimtTilesOf<kOp>{}, *plan.gemm.kernel, [&]<class Tile>(std::type_identity<Tile>) {
      launch_tile<kOp, Tile>(plan.name, device, args, stream);
    });
  });
}

}  // namespace mp::MP_TARGET
