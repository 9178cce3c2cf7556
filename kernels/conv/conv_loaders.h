// How the operands of a convolution come into smem, for the loop of wmma_loop.h.
//
// Every thread keeps to one column of chunks and a few rows.  What does not change along k is found
// out once per tile; the rest moves on by additions.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/gemm/wmma_loop.h"

namespace mp::MP_TARGET {

/// Vectorised: the span begins 16-byte aligned and is all or nothing, but for its end.
template <class T>
MP_DEVICE void copy_span(T *smem, const T *base, const Span8 &span, bool vectorised) {
  if (vectorised) {
    const bool is_empty = span.is_empty();
    copy_async_16(smem, is_empty ? base : base + span.offset,
                  is_empty ? 0 : span.end * int{sizeof(T)});
    return;
  }
  MP_UNROLL
  for (int i = 0; i < kVec; i++)
    smem[i] = span.first <= i && i < span.end ? base[span.offset + i] : T{0};
}

/// Patches with k along the taps: A of fprop and dgrad.
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
        at_(patches.runs, k0 + Chunks::col()),
        vectorised_(vectorised) {
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++)
      origins_[i] = patches.origin(row0 + Chunks::row() + i * Chunks::kRowStep);
  }

  MP_DEVICE void load_next(T *smem) {
    T *const target = smem + Chunks::row() * kPitch + Chunks::col();
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++)
      copy_span(target + i * Chunks::kRowStep * kPitch, image_, patches_.span(origins_[i], at_),
                vectorised_);
    at_.advance(patches_.runs, Tile::kK);
  }

 private:
  const PatchMap &patches_;
  const T *const image_;
  PatchOrigin origins_[Chunks::kIterations];
  TapPosition at_;
  const bool vectorised_;
};

/// The filter with k along the taps: B of fprop.
template <class T, class Tile>
class FilterRowsLoader {
  using Chunks = TileChunks<Tile::kN, Tile::kK, Tile::kThreads>;

 public:
  static constexpr bool kByK = true;
  static constexpr int kPitch = Chunks::kPitch;

  /// `filter`: of row0; so many output channels are there from it on.
  MP_DEVICE FilterRowsLoader(const ConvArgs &args, const T *filter, int64_t rows, int64_t k0)
      : args_(args),
        filter_(filter),
        rows_left_(rows - Chunks::row()),
        at_(args.patches.runs, k0 + Chunks::col()),
        vectorised_(args.other_is_aligned) {}

  MP_DEVICE void load_next(T *smem) {
    const TapRuns &runs = args_.patches.runs;
    T *const target = smem + Chunks::row() * kPitch + Chunks::col();
    const int64_t column = args_.filter.offset(at_) + at_.elem;
    const int valid = at_.valid(runs);
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const int down = i * Chunks::kRowStep;
      const Span8 span{(Chunks::row() + down) * args_.filter_elems + column, 0,
                       down < rows_left_ ? valid : 0};
      copy_span(target + down * kPitch, filter_, span, vectorised_);
    }
    at_.advance(runs, Tile::kK);
  }

 private:
  const ConvArgs &args_;
  const T *const filter_;
  const int64_t rows_left_;
  TapPosition at_;
  const bool vectorised_;
};

/// The filter with k down the rows, input channels along them: B of dgrad.
template <class T, class Tile>
class FilterTapsLoader {
  using Chunks = TileChunks<Tile::kK, Tile::kN, Tile::kThreads>;
  // A thread's rows are whole chunks of k apart, so that one position leads to all of them.
  static_assert(Chunks::kRowStep % kVec == 0);

 public:
  static constexpr bool kByK = false;
  static constexpr int kPitch = Chunks::kPitch;

  /// `filter`: of channel col0; so many input channels are there from it on.
  MP_DEVICE FilterTapsLoader(const ConvProduct<MP_CONV_DGRAD> &product, int64_t filter_elems,
                             const T *filter, int64_t cols, int64_t k0)
      : product_(product),
        filter_elems_(filter_elems),
        filter_(filter + Chunks::col()),
        valid_(static_cast<int>(min_of<int64_t>(cols - Chunks::col(), kVec))),
        at_(product.patches.runs, k0 + Chunks::row()),
        vectorised_(is_aligned_16(filter) && product.n() % kVec == 0) {}

  MP_DEVICE void load_next(T *smem) {
    const TapRuns &runs = product_.patches.runs;
    T *const target = smem + Chunks::row() * kPitch + Chunks::col();
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const Span8 span{at_.elem * filter_elems_ + product_.filter.offset(at_), 0,
                       at_.valid(runs) > 0 ? valid_ : 0};
      copy_span(target + i * Chunks::kRowStep * kPitch, filter_, span, vectorised_);
      at_.advance(runs, Chunks::kRowStep);
    }
  }

 private:
  const ConvProduct<MP_CONV_DGRAD> &product_;
  const int64_t filter_elems_;
  const T *const filter_;
  const int valid_;
  TapPosition at_;
  const bool vectorised_;
};

/// Patches with k, their rows, downwards: B of wgrad.
template <class T, class Tile>
class PatchColumnsLoader {
  using Chunks = TileChunks<Tile::kK, Tile::kN, Tile::kThreads>;

 public:
  static constexpr bool kByK = false;
  static constexpr int kPitch = Chunks::kPitch;

  /// Rows from k0 on, before k_end; `k_end` <= patches.num_rows.
  MP_DEVICE PatchColumnsLoader(const PatchMap &patches, const T *image, bool vectorised,
                               int64_t col0, int64_t k0, int64_t k_end)
      : patches_(patches),
        image_(image),
        at_(patches.runs, col0 + Chunks::col()),
        row_(k0 + Chunks::row()),
        k_end_(k_end),
        vectorised_(vectorised) {}

  MP_DEVICE void load_next(T *smem) {
    T *const target = smem + Chunks::row() * kPitch + Chunks::col();
    MP_UNROLL
    for (int i = 0; i < Chunks::kIterations; i++) {
      const int64_t row = row_ + i * Chunks::kRowStep;
      Span8 span = patches_.span(patches_.origin(row), at_);
      if (row >= k_end_) span.end = 0;
      copy_span(target + i * Chunks::kRowStep * kPitch, image_, span, vectorised_);
    }
    row_ += Tile::kK;
  }

 private:
  const PatchMap &patches_;
  const T *const image_;
  const TapPosition at_;
  int64_t row_;
  const int64_t k_end_;
  const bool vectorised_;
};

}  // namespace mp::MP_TARGET
