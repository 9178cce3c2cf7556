// Addresses in the matrices of a convolution: the im2col operand (matrix of patches), which is
// never stored, and the filter.
//
// The direction of taps and channels consists of segments (`runs`): elements that are contiguous in
// both the image and the filter.  Usually a segment is the channels of one tap.  For an image with
// few channels it is a row of the filter, whose S taps times C channels are contiguous in NHWC.  In
// this direction only, segments are padded to multiples of kVec, so that a vector of kVec elements
// never spans two of them; memory has no padding.
#pragma once

#include "base/workspace_layout.h"
#include "kernels/simt/fast_math.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Segments of a filter.
struct TapSegments {
  int32_t taps_h, taps_w;  ///< segments per column and per row of the filter
  int32_t elems;           ///< per segment
  FastDivisor padded;      ///< divisor: elems, rounded up to a multiple of kVec

  MP_HD int32_t extent() const { return taps_h * taps_w * padded.divisor; }
};

inline TapSegments tap_segments(int32_t taps_h, int32_t taps_w, int32_t elems) {
  return {taps_h, taps_w, elems, fast_divisor(align_up(int64_t{elems}, kVec))};
}

/// Position in the direction of taps and channels.
struct TapPosition {
  int32_t tap_h, tap_w;  ///< segment
  int32_t elem;          ///< index in the segment

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

  /// Returns the number of elements to the end of the segment, at most kVec; 0 past the last
  /// segment.
  MP_DEVICE int valid(const TapSegments &runs) const {
    return tap_h < runs.taps_h ? min_of(max_of(runs.elems - elem, 0), kVec) : 0;
  }
};

/// kVec elements from `offset` on, of which [first, end) are read.
struct Span8 {
  int64_t offset;
  int32_t first, end;

  MP_DEVICE bool is_empty() const { return end <= first; }
};

/// Start of the patch of one row of the im2col operand.
struct PatchOrigin {
  int32_t h, w;    ///< pixel of the first tap; may be outside the image
  int64_t offset;  ///< elements of the tensor before it
};

/// Offset of a position in the direction of taps from the origin of any patch.
struct PatchTap {
  int32_t h;
  int32_t elem;    ///< in the image row
  int64_t offset;  ///< elements
  int32_t valid;   ///< see TapPosition::valid
};

/// The im2col operand.  A row is a pixel (n, i, j) of a grid, a column is a tap and a channel:
///
///     image[n][h][w][channel]
///     h = i stride_h + offset_h + tap_h step_h
///     w = j stride_w + offset_w + tap_w step_w
struct PatchMap {
  int32_t height, width, channels;  ///< extents of the image
  int32_t num_rows;                 ///< pixels of the grid, for all n
  FastDivisor grid_pixels, grid_w;
  int32_t stride_h, stride_w;
  int32_t offset_h, offset_w;
  int32_t step_h, step_w;
  TapSegments runs;

  /// Returns the number of elements per image row.  An image has fewer than 2^30 elements
  /// (capi/conv.cpp, padded_image.cpp).
  MP_DEVICE int32_t line_elems() const { return width * channels; }

  /// Returns the origin of `row`; meaningless unless row < num_rows.
  MP_DEVICE PatchOrigin origin_of(int32_t row) const {
    const Quotient image = grid_pixels.divide(row);
    const Quotient line = grid_w.divide(image.remainder);
    const int32_t h = line.quotient * stride_h + offset_h, w = line.remainder * stride_w + offset_w;
    return {h, w,
            int64_t{image.quotient} * (height * line_elems()) + int64_t{h} * line_elems() +
                w * channels};
  }
  /// Returns the origin of `row`, or one outside the image if row >= num_rows.
  MP_DEVICE PatchOrigin origin(int64_t row) const {
    constexpr int32_t kOutside = -(1 << 30);
    return row < num_rows ? origin_of(static_cast<int32_t>(row)) : PatchOrigin{kOutside, 0, 0};
  }

  MP_DEVICE PatchTap tap(const TapPosition &at) const {
    const int32_t h = at.tap_h * step_h, elem = at.tap_w * step_w * channels + at.elem;
    return {h, elem, int64_t{h} * line_elems() + elem, at.valid(runs)};
  }

  /// Returns whether an element of an image row is in bounds.  Converted to unsigned, negative
  /// values are too large.
  MP_DEVICE bool is_inside(int32_t h, int32_t elem) const {
    return static_cast<uint32_t>(h) < static_cast<uint32_t>(height) &&
           static_cast<uint32_t>(elem) < static_cast<uint32_t>(line_elems());
  }

  /// Returns the elements that are inside the image: all or none of a tap's channels, or a part of
  /// a row of taps.
  MP_DEVICE Span8 span(const PatchOrigin &origin, const PatchTap &tap) const {
    const int32_t h = origin.h + tap.h;
    const int32_t elem = origin.w * channels + tap.elem;  // in the image row
    const bool is_line = h >= 0 && h < height;
    return {origin.offset + tap.offset, max_of(-elem, 0),
            is_line ? min_of(tap.valid, line_elems() - elem) : 0};
  }
  MP_DEVICE Span8 span(const PatchOrigin &origin, const TapPosition &at) const {
    return span(origin, tap(at));
  }
};

/// The direction of taps in the filter, in elements from the start of an output channel.
struct FilterMap {
  int32_t first;
  int32_t step_h, step_w;  ///< distance between taps

  MP_DEVICE int64_t offset(const TapPosition &at) const {
    return first + int64_t{at.tap_h} * step_h + int64_t{at.tap_w} * step_w;
  }
  /// Returns the offset of a tap of `channel`, each of which has `channel_elems` elements, from the
  /// start of the filter.  A filter has fewer than 2^30 elements.  Past the last tap the result is
  /// arbitrary, because nothing is read there.
  MP_DEVICE uint32_t offset(const TapPosition &at, int32_t channel, int64_t channel_elems) const {
    return static_cast<uint32_t>(channel) * static_cast<uint32_t>(channel_elems) +
           static_cast<uint32_t>(offset(at));
  }
};

}  // namespace mp::MP_TARGET
