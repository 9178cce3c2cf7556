// Loads of the operands of a convolution into shared memory, for the loop of wmma_loop.h.
//
// Each thread copies one column of 16-byte vectors and a few rows.  Addresses that do not depend on
// k are computed once per tile; the others advance by additions.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/gemm/wmma_loop.h"

namespace mp::MP_TARGET {

/// Copies a span.  `vectorised` requires that it is 16-byte aligned, and empty or with first = 0.
template <class T>
MP_DEVICE void copy_span(T *smem, const T *base, const Span8 &span, bool vectorised) {
  const T *const source = base + span.offset;
  if (vectorised)
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
  static constexpr int kPitch = Chunks::kPitch;

  MP_DEVICE PatchRowsLoader(const PatchMap &patches, const T *image, bool vectorised, int64_t row0,
                            int64_t k0)
      : patches_(patches),
        image_(image),
        row_(row0 + Chunks::row()),
        at_(patches.runs, k0 + Chunks::col()),
        place_(Chunks::place()),
        vectorised_(vectorised) {
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const PatchOrigin origin = patches.origin(row_ + i * Chunks::kRowStep);
      rows_[i] = {image + origin.offset, origin.h, origin.w * patches.channels};
    }
  }

  MP_DEVICE void load_next(T *smem) {
    T *const target = smem + place_;
    const PatchTap tap = patches_.tap(at_);
    if (vectorised_ && tap.valid == kVec)
      copy_whole_chunks(target, tap);
    else
      copy_spans(target, tap);
    at_.advance(patches_.runs, Tile::kK);
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
      copy_async_16(target + i * Chunks::kRowStep * kPitch, row.first + tap.offset,
                    is_inside ? 16 : 0);
    }
  }

  MP_DEVICE void copy_spans(T *target, const PatchTap &tap) const {
    MP_NO_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const Span8 span = patches_.span(patches_.origin(row_ + i * Chunks::kRowStep), tap);
      copy_span(target, image_, span, vectorised_);
      target += Chunks::kRowStep * kPitch;
    }
  }

  const PatchMap &patches_;
  const T *const image_;
  const int64_t row_;
  Row rows_[Chunks::kIterations];
  TapPosition at_;
  const int place_;
  const bool vectorised_;
};

/// Loads the filter with k along the taps: B of fprop.
template <class T, class Tile>
class FilterRowsLoader {
  using Chunks = TileChunks<Tile::kN, Tile::kK, Tile::kThreads>;

 public:
  static constexpr bool kByK = true;
  static constexpr int kPitch = Chunks::kPitch;

  /// `filter`: first output channel of the tile; `rows`: output channels from there on.
  MP_DEVICE FilterRowsLoader(const ConvArgs &args, const T *filter, int64_t rows, int64_t k0)
      : args_(args),
        filter_(filter + Chunks::row() * args.filter_elems),
        rows_left_(static_cast<int>(min_of<int64_t>(rows, Tile::kN)) - Chunks::row()),
        at_(args.patches.runs, k0 + Chunks::col()),
        place_(Chunks::place()),
        vectorised_(args.other_is_aligned) {}

  MP_DEVICE void load_next(T *smem) {
    const TapSegments &runs = args_.patches.runs;
    T *const target = smem + place_;
    const T *const source = filter_ + (args_.filter.offset(at_) + at_.elem);
    const int valid = at_.valid(runs);
    if (vectorised_ && valid == kVec)
      copy_whole_chunks(target, source);
    else
      copy_spans(target, source, valid);
    at_.advance(runs, Tile::kK);
  }

 private:
  MP_DEVICE void copy_whole_chunks(T *target, const T *source) const {
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      copy_async_16(target, source, i * Chunks::kRowStep < rows_left_ ? 16 : 0);
      target += Chunks::kRowStep * kPitch;
      source += Chunks::kRowStep * args_.filter_elems;
    }
  }

  MP_DEVICE void copy_spans(T *target, const T *source, int valid) const {
    MP_NO_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const Span8 span{0, 0, i * Chunks::kRowStep < rows_left_ ? valid : 0};
      copy_span(target, source, span, vectorised_);
      target += Chunks::kRowStep * kPitch;
      source += Chunks::kRowStep * args_.filter_elems;
    }
  }

  const ConvArgs &args_;
  const T *const filter_;
  const int rows_left_;
  TapPosition at_;
  const int place_;
  const bool vectorised_;
};

/// Loads the filter with one k per row and input channels along the rows: B of dgrad.
template <class T, class Tile>
class FilterTapsLoader {
  using Chunks = TileChunks<Tile::kK, Tile::kN, Tile::kThreads>;
  // A thread's rows are a multiple of kVec apart, so one position can advance through all of them.
  static_assert(Chunks::kRowStep % kVec == 0);

 public:
  static constexpr bool kByK = false;
  static constexpr int kPitch = Chunks::kPitch;

  /// `filter`: first input channel of the tile; `cols`: input channels from there on.
  MP_DEVICE FilterTapsLoader(const ConvProduct<MP_CONV_DGRAD> &product, int64_t filter_elems,
                             const T *filter, int64_t cols, int64_t k0)
      : product_(product),
        filter_elems_(filter_elems),
        filter_(filter + Chunks::col()),
        valid_(static_cast<int>(min_of<int64_t>(cols - Chunks::col(), kVec))),
        at_(product.patches.runs, k0 + Chunks::row()),
        place_(Chunks::place()),
        vectorised_(is_aligned_16(filter) && product.n() % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const TapSegments &runs = product_.patches.runs;
    T *target = smem + place_;
    const auto copy_next = [&](auto copy) {
      copy(filter_ + product_.filter.offset(at_, at_.elem, filter_elems_), at_.valid(runs) > 0);
      target += Chunks::kRowStep * kPitch;
      at_.advance(runs, Chunks::kRowStep);
    };
    if (vectorised_) {
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
  const int place_;
  const bool vectorised_;
};

/// Loads patches with one k, a pixel, per row: B of wgrad.
template <class T, class Tile>
class PatchColumnsLoader {
  using Chunks = TileChunks<Tile::kK, Tile::kN, Tile::kThreads>;

 public:
  static constexpr bool kByK = false;
  static constexpr int kPitch = Chunks::kPitch;

  /// Loads rows [k0, k_end) and zeros after them.  `k_end` <= patches.num_rows.
  MP_DEVICE PatchColumnsLoader(const PatchMap &patches, const T *image, bool vectorised,
                               int64_t col0, int64_t k0, int64_t k_end)
      : patches_(patches),
        image_(image),
        tap_(patches.tap({patches.runs, col0 + Chunks::col()})),
        row_(static_cast<int32_t>(k0) + Chunks::row()),
        k_end_(static_cast<int32_t>(k_end)),
        place_(Chunks::place()),
        vectorised_(vectorised) {}

  MP_DEVICE void load_next(T *smem) {
    T *const target = smem + place_;
    if (vectorised_ && tap_.valid == kVec)
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
      copy_async_16(target + i * Chunks::kRowStep * kPitch, image_ + (origin.offset + tap_.offset),
                    is_inside ? 16 : 0);
    }
  }

  MP_DEVICE void copy_spans(T *target) const {
    MP_NO_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const int32_t row = row_ + i * Chunks::kRowStep;
      Span8 span = patches_.span(patches_.origin(row), tap_);
      if (row >= k_end_) span.end = 0;
      copy_span(target, image_, span, vectorised_);
      target += Chunks::kRowStep * kPitch;
    }
  }

  const PatchMap &patches_;
  const T *const image_;
  const PatchTap tap_;
  int32_t row_;
  const int32_t k_end_;
  const int place_;
  const bool vectorised_;
};

}  // namespace mp::MP_TARGET
