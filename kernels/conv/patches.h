// Where the elements of the matrices of a convolution are: the matrix of patches (im2col), which is
// never stored, and the filter beside it.
//
// The direction of filter taps and channels is walked in runs of elements that are contiguous both in
// the image and in the filter.  Usually a run is the channels of one tap.  Where an image has few
// channels it is a row of the filter: in NHWC its S taps times C channels lie side by side too.  Runs
// are padded to multiples of kVec in this direction alone, so that kVec neighbours never belong to two
// of them; memory has no padding.
#pragma once

#include "kernels/simt/fast_divisor.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

struct TapSegments {
  int32_t taps_h, taps_w;  ///< of the filter, counted in runs
  int32_t elems;           ///< of a run
  FastDivisor padded;      ///< by elems, rounded up to kVec

  MP_HD int32_t extent() const { return taps_h * taps_w * padded.divisor; }
};

inline TapSegments tap_segments(int32_t taps_h, int32_t taps_w, int32_t elems) {
  return {taps_h, taps_w, elems, fast_divisor((int64_t{elems} + kVec - 1) / kVec * kVec)};
}

/// A place in that direction.
struct TapPosition {
  int32_t tap_h, tap_w;  ///< of the run
  int32_t elem;          ///< in the run

  TapPosition() = default;
  MP_DEVICE TapPosition(const TapSegments &runs, int64_t index) {
    const Quotient run = runs.padded.divide(static_cast<int32_t>(index));
    const int32_t across = max_of(runs.taps_w, 1);
    tap_h = run.quotient / across;
    tap_w = run.quotient % across;
    elem = run.remainder;
  }

  MP_DEVICE void advance(const TapSegments &runs, int32_t elems) {
    elem += elems;
    while (elem >= runs.padded.divisor) {
      elem -= runs.padded.divisor;
      if (++tap_w < runs.taps_w) continue;
      tap_w = 0;
      tap_h++;
    }
  }

  /// Elements from here to the end of the run, at most kVec; none past the last run.
  MP_DEVICE int valid(const TapSegments &runs) const {
    return tap_h < runs.taps_h ? min_of(max_of(runs.elems - elem, 0), kVec) : 0;
  }
};

/// kVec elements from `offset` on, of which [first, end) are to be read.
struct Span8 {
  int64_t offset;
  int32_t first, end;

  MP_DEVICE bool is_empty() const { return end <= first; }
};

/// Where the patch of one row of the matrix begins.
struct PatchOrigin {
  int32_t h, w;    ///< of its first tap; may lie outside the image
  int64_t offset;  ///< elements before it
};

/// What a place in the direction of taps adds to the origin of any patch.
struct PatchTap {
  int32_t h;
  int32_t elem;    ///< in the line
  int64_t offset;  ///< elements
  int32_t valid;   ///< as TapPosition's
};

/// The matrix of patches.  Row: pixel (n, i, j) of a grid.  Column: a tap and a channel.
///
///     image[n][i stride_h + offset_h + tap_h step_h][j stride_w + offset_w + tap_w step_w][channel]
struct PatchMap {
  int32_t height, width, channels;  ///< of the image
  int32_t num_rows;                 ///< pixels of the grid, over all n
  FastDivisor grid_pixels, grid_w;
  int32_t stride_h, stride_w;
  int32_t offset_h, offset_w;
  int32_t step_h, step_w;
  TapSegments runs;

  /// Elements; an image has fewer than 2^30 (capi/conv.cpp, padded_image.cpp).
  MP_DEVICE int32_t line_elems() const { return width * channels; }

  /// Of a row that is there; of any other one it is of no use.
  MP_DEVICE PatchOrigin origin_of(int32_t row) const {
    const Quotient image = grid_pixels.divide(row);
    const Quotient line = grid_w.divide(image.remainder);
    const int32_t h = line.quotient * stride_h + offset_h, w = line.remainder * stride_w + offset_w;
    return {h, w,
            int64_t{image.quotient} * (height * line_elems()) + int64_t{h} * line_elems() +
                w * channels};
  }
  /// Past the last row: outside the image.
  MP_DEVICE PatchOrigin origin(int64_t row) const {
    constexpr int32_t kOutside = -(1 << 30);
    return row < num_rows ? origin_of(static_cast<int32_t>(row)) : PatchOrigin{kOutside, 0, 0};
  }

  MP_DEVICE PatchTap tap(const TapPosition &at) const {
    const int32_t h = at.tap_h * step_h, elem = at.tap_w * step_w * channels + at.elem;
    return {h, elem, int64_t{h} * line_elems() + elem, at.valid(runs)};
  }

  /// Of an element of a line; a negative number is too large when it is read as unsigned.
  MP_DEVICE bool is_inside(int32_t h, int32_t elem) const {
    return static_cast<uint32_t>(h) < static_cast<uint32_t>(height) &&
           static_cast<uint32_t>(elem) < static_cast<uint32_t>(line_elems());
  }

  /// What lies left or right of the image is cut off: the whole run of one tap, or a part of a run
  /// that is a row of taps.
  MP_DEVICE Span8 span(const PatchOrigin &origin, const PatchTap &tap) const {
    const int32_t h = origin.h + tap.h;
    const int32_t elem = origin.w * channels + tap.elem;  // in the line
    const bool is_line = h >= 0 && h < height;
    return {origin.offset + tap.offset, max_of(-elem, 0),
            is_line ? min_of(tap.valid, line_elems() - elem) : 0};
  }
  MP_DEVICE Span8 span(const PatchOrigin &origin, const TapPosition &at) const {
    return span(origin, tap(at));
  }
};

/// The same direction in the filter: elements from the first one of an output channel.
struct FilterMap {
  int32_t first;
  int32_t step_h, step_w;  ///< from tap to tap

  MP_DEVICE int64_t offset(const TapPosition &at) const {
    return first + int64_t{at.tap_h} * step_h + int64_t{at.tap_w} * step_w;
  }
  /// From the first one of the filter, which has fewer than 2^30 in all: the tap of a channel, of which each has
  /// so many.  Of a place beyond the filter, where nothing is read, it may be any number.
  MP_DEVICE uint32_t offset(const TapPosition &at, int32_t channel, int64_t channel_elems) const {
    return static_cast<uint32_t>(channel) * static_cast<uint32_t>(channel_elems) +
           static_cast<uint32_t>(offset(at));
  }
};

}  // namespace mp::MP_TARGET
