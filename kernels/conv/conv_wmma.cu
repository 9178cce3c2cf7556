// Convolution on the tensor cores through WMMA: the loop of wmma_loop.h over patches and filters.

#include "kernels/conv/conv_args.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/wmma_loop.h"

namespace mp::MP_TARGET {

namespace {

// ---------------------------------------------------------------------------- loaders

// Each thread copies one column of 16-byte vectors and a few rows.  Addresses that do not depend on
// k are computed once per tile; the others advance by additions.

/// Copies a span.  `vectorized` requires that it is 16-byte aligned, and empty or with first = 0.
template <class T>
MP_DEVICE void copy_span(T *smem, const T *base, const Span8 &span, bool vectorized) {
  const T *const source = base + span.offset;
  if (vectorized)
    copy_async_16(smem, source, span.is_empty() ? 0 : span.end * int{sizeof(T)});
  else
    copy_elements(smem, source, span.first, span.end);
}

// Each loader has two paths, like MatrixLoader.  Nearly all vectors are full or zero: an unrolled
// loop issues their copies back to back.  A rolled loop copies all others and recomputes their
// spans.

/// Loads patches with k along the taps: A of fprop and dgrad.
template <class T, class Tile>
class PatchRowsLoader {
  using Chunks = TileChunks<Tile::kM, Tile::kK, Tile::kThreads>;

 public:
  static constexpr bool kByK = true;

  MP_DEVICE PatchRowsLoader(const PatchMap &patches, const T *image, bool vectorized, int64_t row0,
                            int64_t k0)
      : patches_(patches),
        image_(image),
        row_(row0 + Chunks::row()),
        at_(patches.segments, k0 + Chunks::col()),
        smem_offset_(Chunks::smem_offset()),
        vectorized_(vectorized) {
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const PatchOrigin origin = patches.origin(row_ + i * Chunks::kRowStep);
      rows_[i] = {image + origin.offset, origin.h, origin.w * patches.channels};
    }
  }

  MP_DEVICE void load_next(T *smem) {
    T *const target = smem + smem_offset_;
    const PatchTap tap = patches_.tap(at_);
    if (vectorized_ && tap.valid == kVec)
      copy_whole_chunks(target, tap);
    else
      copy_spans(target, tap);
    at_.advance(patches_.segments, Tile::kK);
  }

 private:
  /// Start of a patch: address, image row and element in that row.  Both may be outside the image.
  struct Row {
    const T *first;
    int32_t h, elem;
  };

  MP_DEVICE void copy_whole_chunks(T *target, const PatchTap &tap) const {
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const Row &row = rows_[i];
      const bool is_inside = patches_.is_inside(row.h + tap.h, row.elem + tap.elem);
      copy_async_16(target + i * Chunks::kRowStep * Chunks::kPitch, row.first + tap.offset,
                    is_inside ? 16 : 0);
    }
  }

  MP_DEVICE void copy_spans(T *target, const PatchTap &tap) const {
    MP_NO_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const Span8 span = patches_.span(patches_.origin(row_ + i * Chunks::kRowStep), tap);
      copy_span(target, image_, span, vectorized_);
      target += Chunks::kRowStep * Chunks::kPitch;
    }
  }

  const PatchMap &patches_;
  const T *const image_;
  const int64_t row_;
  Row rows_[Chunks::kIterations];
  TapPosition at_;
  const int smem_offset_;
  const bool vectorized_;
};

/// Loads the filter with k along the taps: B of fprop.
template <class T, class Tile>
class FilterRowsLoader {
  using Chunks = TileChunks<Tile::kN, Tile::kK, Tile::kThreads>;

 public:
  static constexpr bool kByK = true;

  /// `filter`: first output channel of the tile; `rows`: output channels from there on.
  MP_DEVICE FilterRowsLoader(const ConvArgs &args, const T *filter, int64_t rows, int64_t k0)
      : args_(args),
        filter_(filter + Chunks::row() * args.filter_elems),
        rows_left_(static_cast<int>(min_of<int64_t>(rows, Tile::kN)) - Chunks::row()),
        at_(args.patches.segments, k0 + Chunks::col()),
        smem_offset_(Chunks::smem_offset()),
        vectorized_(args.other_is_aligned) {}

  MP_DEVICE void load_next(T *smem) {
    const TapSegments &segments = args_.patches.segments;
    T *const target = smem + smem_offset_;
    const T *const source = filter_ + (args_.filter.offset(at_) + at_.elem);
    const int valid = at_.valid(segments);
    if (vectorized_ && valid == kVec)
      copy_whole_chunks(target, source);
    else
      copy_spans(target, source, valid);
    at_.advance(segments, Tile::kK);
  }

 private:
  MP_DEVICE void copy_whole_chunks(T *target, const T *source) const {
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      copy_async_16(target, source, i * Chunks::kRowStep < rows_left_ ? 16 : 0);
      target += Chunks::kRowStep * Chunks::kPitch;
      source += Chunks::kRowStep * args_.filter_elems;
    }
  }

  MP_DEVICE void copy_spans(T *target, const T *source, int valid) const {
    MP_NO_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const Span8 span{0, 0, i * Chunks::kRowStep < rows_left_ ? valid : 0};
      copy_span(target, source, span, vectorized_);
      target += Chunks::kRowStep * Chunks::kPitch;
      source += Chunks::kRowStep * args_.filter_elems;
    }
  }

  const ConvArgs &args_;
  const T *const filter_;
  const int rows_left_;
  TapPosition at_;
  const int smem_offset_;
  const bool vectorized_;
};

/// Loads the filter with one k per row and input channels along the rows: B of dgrad.
template <class T, class Tile>
class FilterTapsLoader {
  using Chunks = TileChunks<Tile::kK, Tile::kN, Tile::kThreads>;
  // A thread's rows are a multiple of kVec apart, so one position can advance through all of them.
  static_assert(Chunks::kRowStep % kVec == 0);

 public:
  static constexpr bool kByK = false;

  /// `filter`: first input channel of the tile; `cols`: input channels from there on.
  MP_DEVICE FilterTapsLoader(const ConvProduct<MP_CONV_DGRAD> &product, int64_t filter_elems,
                             const T *filter, int64_t cols, int64_t k0)
      : product_(product),
        filter_elems_(filter_elems),
        filter_(filter + Chunks::col()),
        valid_(static_cast<int>(min_of<int64_t>(cols - Chunks::col(), kVec))),
        at_(product.patches.segments, k0 + Chunks::row()),
        smem_offset_(Chunks::smem_offset()),
        vectorized_(is_aligned_16(filter) && product.n() % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const TapSegments &segments = product_.patches.segments;
    T *target = smem + smem_offset_;
    const auto copy_next = [&](auto copy) {
      copy(filter_ + product_.filter.offset(at_, at_.elem, filter_elems_), at_.valid(segments) > 0);
      target += Chunks::kRowStep * Chunks::kPitch;
      at_.advance(segments, Chunks::kRowStep);
    };
    if (vectorized_) {
      MP_UNROLL
      for (int i = 0; i < Chunks::kIterations; i++)
        copy_next([&](const T *source, bool is_inside) {
          copy_async_16(target, source, is_inside && valid_ > 0 ? 16 : 0);
        });
    } else {
      MP_NO_UNROLL
      for (int i = 0; i < Chunks::kIterations; i++)
        copy_next([&](const T *source, bool is_inside) {
          copy_elements(target, source, 0, is_inside ? valid_ : 0);
        });
    }
  }

 private:
  const ConvProduct<MP_CONV_DGRAD> &product_;
  const int64_t filter_elems_;
  const T *const filter_;
  const int valid_;
  TapPosition at_;
  const int smem_offset_;
  const bool vectorized_;
};

/// Loads patches with one k, a pixel, per row: B of wgrad.
template <class T, class Tile>
class PatchColumnsLoader {
  using Chunks = TileChunks<Tile::kK, Tile::kN, Tile::kThreads>;

 public:
  static constexpr bool kByK = false;

  /// Loads rows [k0, k_end) and zeros after them.  `k_end` <= patches.num_rows.
  MP_DEVICE PatchColumnsLoader(const PatchMap &patches, const T *image, bool vectorized,
                               int64_t col0, int64_t k0, int64_t k_end)
      : patches_(patches),
        image_(image),
        tap_(patches.tap({patches.segments, col0 + Chunks::col()})),
        row_(static_cast<int32_t>(k0) + Chunks::row()),
        k_end_(static_cast<int32_t>(k_end)),
        smem_offset_(Chunks::smem_offset()),
        vectorized_(vectorized) {}

  MP_DEVICE void load_next(T *smem) {
    T *const target = smem + smem_offset_;
    if (vectorized_ && tap_.valid == kVec)
      copy_whole_chunks(target);
    else
      copy_spans(target);
    row_ += Tile::kK;
  }

 private:
  MP_DEVICE void copy_whole_chunks(T *target) const {
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const int32_t row = row_ + i * Chunks::kRowStep;
      const PatchOrigin origin = patches_.origin_of(row);
      const bool is_inside =
          row < k_end_ &&
          patches_.is_inside(origin.h + tap_.h, origin.w * patches_.channels + tap_.elem);
      copy_async_16(target + i * Chunks::kRowStep * Chunks::kPitch,
                    image_ + (origin.offset + tap_.offset), is_inside ? 16 : 0);
    }
  }

  MP_DEVICE void copy_spans(T *target) const {
    MP_NO_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const int32_t row = row_ + i * Chunks::kRowStep;
      Span8 span = patches_.span(patches_.origin(row), tap_);
      if (row >= k_end_) span.end = 0;
      copy_span(target, image_, span, vectorized_);
      target += Chunks::kRowStep * Chunks::kPitch;
    }
  }

  const PatchMap &patches_;
  const T *const image_;
  const PatchTap tap_;
  int32_t row_;
  const int32_t k_end_;
  const int smem_offset_;
  const bool vectorized_;
};

// ---------------------------------------------------------------------------- kernel

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
    with_half_type(args_.dtype, [&]<class T>(std::type_identity<T>) {
      if constexpr (wmma::supported<T, kSmemBytes>()) {
        Loaders<T> load(args_, product_, m0_, n0_, k_begin_, k_end_);
        loop.template multiply_add<T>(smem, load.a, load.b,
                                      ceil_div(k_end_ - k_begin_, int64_t{Tile::kK}));
      }
    });
    EpilogueWriter writer(args_.out, 0);
    const bool is_split = args_.partial_sums != nullptr, is_fp32 = args_.out.dtype == MP_FP32;
    // Eight columns may span several taps of dfilter (FilterSegments).
    const bool is_in_fours = op == MP_CONV_WGRAD && args_.written.padded.divisor % kVec != 0;
    const bool by_four = is_split || is_fp32 || is_in_fours;
    loop.store_tile(smem, by_four, [&]<int kRun>(int row, int col, float(&x)[kRun]) {
      const OutputCoord to = product_.template output_coord<kRun>(m0_ + row, n0_ + col);
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
  with_conv_op(op, [&]<mp_conv_op_t kPass>(Value<kPass>) {
    with_tile(WmmaTiles{}, *plan.gemm.kernel, [&]<class Tile>(std::type_identity<Tile>) {
      const LaunchShape shape{min_of(args.scheduler.num_work_tiles(), kMaxBlocks), Tile::kThreads,
                              ConvWmma<kPass, Tile>::kSmemBytes};
      launch(plan.name, conv_wmma<kPass, Tile>, device, shape, stream, args);
    });
  });
}

}  // namespace mp::MP_TARGET
