// Convolution on the CUDA cores: the loop of simt_loop.h over patches and filters.
//
// For layers that are kept in fp32; it runs everything else too.
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_dispatch.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/simt_loop.h"

namespace mp::MP_TARGET {

namespace {

/// A tensor of a product; its type is known at run time.
struct Tensor {
  mp_dtype_t dtype;
  const void *base;

  MP_DEVICE Tensor(const void *tensor, mp_dtype_t type, int64_t first_elem)
      : dtype(type),
        base(static_cast<const char *>(in_gmem(tensor)) + first_elem * dtype_bytes(type)) {}

  MP_DEVICE void load(float (&values)[kVec], const Span8 &span) const {
    if (span.first <= 0) {
      const int valid = max_of(span.end, 0);
      return load_run(values, dtype, base, valid > 0 ? span.offset : 0, valid);
    }
    // A row of taps that begins left of the image.
    for (int i = 0; i < kVec; i++) {
      float value[1];
      const bool inside = span.first <= i && i < span.end;
      load_run(value, dtype, base, inside ? span.offset + i : 0, inside ? 1 : 0);
      values[i] = value[0];
    }
  }
};

/// x is a row of patches.
struct PatchRows {
  static constexpr bool by_k = true;
  const PatchMap &patches;
  const Tensor image;

  using Place = PatchOrigin;
  MP_DEVICE Place place(int64_t x) const { return patches.origin(x); }

  MP_DEVICE void load(float (&values)[kVec], const Place &origin, int64_t k, int64_t) const {
    image.load(values, patches.span(origin, TapPosition(patches.runs, k)));
  }
};

/// x is a column of patches.
struct PatchColumns {
  static constexpr bool by_k = false;
  const PatchMap &patches;
  const Tensor image;

  using Place = TapPosition;
  MP_DEVICE Place place(int64_t x) const { return {patches.runs, x}; }

  MP_DEVICE void load(float (&values)[kVec], const Place &at, int64_t k, int64_t k_end) const {
    Span8 span = patches.span(patches.origin(k), at);
    if (k >= k_end) span.end = 0;
    image.load(values, span);
  }
};

/// x is an output channel.
struct FilterRows {
  static constexpr bool by_k = true;
  const ConvArgs &args;
  const Tensor filter;

  struct Place {
    int64_t offset;
    bool inside;
  };
  MP_DEVICE Place place(int64_t x) const { return {x * args.filter_elems, x < args.group_k}; }

  MP_DEVICE void load(float (&values)[kVec], const Place &row, int64_t k, int64_t) const {
    if (!row.inside) return filter.load(values, {0, 0, 0});
    const TapPosition at(args.patches.runs, k);
    filter.load(values,
                {row.offset + args.filter.offset(at) + at.elem, 0, at.valid(args.patches.runs)});
  }
};

/// Neighbouring channels, of which x is the first.
struct Channels {
  int64_t first;
  int valid;
};

/// x is an input channel.
struct FilterTaps {
  static constexpr bool by_k = false;
  const ConvProduct<MP_CONV_DGRAD> &product;
  const int64_t filter_elems;
  const Tensor filter;

  using Place = Channels;
  MP_DEVICE Place place(int64_t x) const {
    return {x, static_cast<int>(min_of<int64_t>(product.n() - x, kVec))};
  }

  MP_DEVICE void load(float (&values)[kVec], const Place &channels, int64_t k, int64_t) const {
    const TapPosition at(product.patches.runs, k);
    const int64_t offset = at.elem * filter_elems + product.filter.offset(at) + channels.first;
    const bool inside = at.valid(product.patches.runs) > 0;
    filter.load(values, {offset, 0, inside ? channels.valid : 0});
  }
};

/// x is an output channel, k a pixel.
struct OutputGradient {
  static constexpr bool by_k = false;
  const int64_t ld, extent;
  const Tensor dy;

  using Place = Channels;
  MP_DEVICE Place place(int64_t x) const {
    return {x, static_cast<int>(min_of<int64_t>(extent - x, kVec))};
  }

  MP_DEVICE void load(float (&values)[kVec], const Place &channels, int64_t k,
                      int64_t k_end) const {
    dy.load(values, {k * ld + channels.first, 0, k < k_end ? channels.valid : 0});
  }
};

/// The sources of a pass.
template <mp_conv_op_t op>
struct ConvSources;

template <>
struct ConvSources<MP_CONV_FPROP> {
  using A = PatchRows;
  using B = FilterRows;
  MP_DEVICE ConvSources(const ConvArgs &args, const ConvProduct<MP_CONV_FPROP> &x)
      : a{x.patches, {args.image, args.dtype, x.image_elem()}},
        b{args, {args.other, args.dtype, x.filter_elem()}} {}
  A a;
  B b;
};

template <>
struct ConvSources<MP_CONV_DGRAD> {
  using A = PatchRows;
  using B = FilterTaps;
  MP_DEVICE ConvSources(const ConvArgs &args, const ConvProduct<MP_CONV_DGRAD> &x)
      : a{x.patches, {args.image, args.dtype, x.image_elem()}},
        b{x, args.filter_elems, {args.other, args.dtype, x.filter_elem()}} {}
  A a;
  B b;
};

template <>
struct ConvSources<MP_CONV_WGRAD> {
  using A = OutputGradient;
  using B = PatchColumns;
  MP_DEVICE ConvSources(const ConvArgs &args, const ConvProduct<MP_CONV_WGRAD> &x)
      : a{x.dy_ld(), x.m(), {args.other, args.dtype, x.dy_elem()}},
        b{x.patches, {args.image, args.dtype, x.image_elem()}} {}
  A a;
  B b;
};

template <mp_conv_op_t op, class Tile>
using Loop = SimtLoop<Tile, typename ConvSources<op>::A, typename ConvSources<op>::B>;

template <mp_conv_op_t op, class Tile>
MP_DEVICE void convolve_tile(const ConvArgs &args, const WorkTile &work, float *smem) {
  const ConvProduct<op> product(args, work.batch_item);
  const ConvSources<op> sources(args, product);
  const int64_t m0 = work.tile_m * Tile::kM, n0 = work.tile_n * Tile::kN;
  Loop<op, Tile> loop;
  loop.multiply(smem, sources.a, sources.b, m0, n0, 0, product.k());
  EpilogueWriter writer(args.out, 0);
  loop.store_tile([&](int row, int col, float(&x)[kVec]) {
    const OutputPlace to = product.place(m0 + row, n0 + col);
    if (to.valid > 0) writer.write(to.row, to.col, x, to.valid);
  });
  writer.finish();
}

template <mp_conv_op_t op, class Tile>
MP_KERNEL(Tile::kThreads, 1)
conv_simt(MP_PARAM(ConvArgs) args) {
  constexpr int kSmemFloats = Loop<op, Tile>::kSmemFloats;
  MP_SHARED(float, smem, [kSmemFloats]);
  const int64_t num_work_tiles = args.scheduler.num_work_tiles();
  for (int64_t number = block_index(); number < num_work_tiles; number += grid_size())
    convolve_tile<op, Tile>(args, args.scheduler(number), smem);
}

template <mp_conv_op_t op, class Tile>
void launch_tile(const char *name, const Device &device, const ConvArgs &args, mp_stream_t stream) {
  const LaunchShape shape{min_of(args.scheduler.num_work_tiles(), kMaxBlocks), Tile::kThreads};
  launch(name, conv_simt<op, Tile>, device, shape, stream, args);
}

}  // namespace

void launch_conv_simt(const ConvChoice &choice, mp_conv_op_t op, const Device &device,
                      const ConvArgs &args, mp_stream_t stream) {
  with_conv_op(op, [&](auto pass) {
    with_tile(SimtTiles{}, *choice.gemm.kernel, [&](auto tile) {
      launch_tile<decltype(pass)::value, typename decltype(tile)::type>(choice.name, device, args,
                                                                        stream);
    });
  });
}

}  // namespace mp::MP_TARGET
