// Arguments of the convolution kernels, the matrix product of a group, and the addresses in its
// matrices: the im2col operand (matrix of patches), which is never stored, and the filter.
//
//     pass    m (rows)       n (columns)    k (sum)       A                     B
//     fprop   pixels of y    K              taps x C      patches of x          filter
//     dgrad   pixels of dx   C              taps x K      patches of dy         filter
//     wgrad   K              taps x C       pixels of y   dy, transposed        patches of x
//
// Each group is a separate GEMM.  With a stride, dgrad is one GEMM per stride phase, which consists
// of the pixels of dx with equal remainders modulo stride_h and stride_w.
// Tap r reaches pixel h if h + pad - r dilation is divisible by the stride, so a phase sums over
// these taps only and multiplies no zeros.
//
// Source: Chetlur et al., cuDNN, 2014, section 3; CUTLASS, implicit_gemm_convolution.md.
#pragma once

#include <type_traits>

#include "base/workspace_layout.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/tile_scheduler.h"
#include "kernels/simt/fast_math.h"
#include "kernels/simt/vector.h"
#include "mpcore/conv.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- addresses

// The direction of taps and channels consists of segments: elements that are contiguous in
// both the image and the filter.  Usually a segment is the channels of one tap.  For an image with
// few channels it is a row of the filter, whose S taps times C channels are contiguous in NHWC.  In
// this direction only, segments are padded to multiples of kVec, so that a vector of kVec elements
// never spans two of them; memory has no padding.

/// Segments of a filter.
struct TapSegments {
  int32_t taps_h, taps_w;  ///< segments per column and per row of the filter
  int32_t elems;           ///< per segment
  FastDivisor padded;      ///< divisor: elems, rounded up to a multiple of kVec

  MP_HD int32_t extent() const { return taps_h * taps_w * padded.divisor; }
};

/// Position in the direction of taps and channels.
struct TapPosition {
  int32_t tap_h, tap_w;  ///< segment
  int32_t elem;          ///< index in the segment

  TapPosition() = default;
  MP_DEVICE TapPosition(const TapSegments &segments, int64_t index) {
    const Quotient segment = segments.padded.divide(static_cast<int32_t>(index));
    const int32_t across = max_of(segments.taps_w, 1);
    tap_h = segment.quotient / across;
    tap_w = segment.quotient % across;
    elem = segment.remainder;
  }

  MP_DEVICE void advance(const TapSegments &segments, int32_t elems) {
    elem += elems;
    while (elem >= segments.padded.divisor) {
      elem -= segments.padded.divisor;
      if (++tap_w < segments.taps_w) continue;
      tap_w = 0;
      tap_h++;
    }
  }

  /// Returns the number of elements to the end of the segment, at most kVec; 0 past the last
  /// segment.
  MP_DEVICE int valid(const TapSegments &segments) const {
    return tap_h < segments.taps_h ? min_of(max_of(segments.elems - elem, 0), kVec) : 0;
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
  TapSegments segments;

  /// Returns the number of elements per image row.  An image has fewer than 2^30 elements
  /// (capi/conv.cpp, padded_image).
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
    return {h, elem, int64_t{h} * line_elems() + elem, at.valid(segments)};
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
    const int32_t elem = origin.w * channels + tap.elem;  // position in the image row
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

// ---------------------------------------------------------------------------- arguments

/// Layout in dfilter of a segment of taps and channels: consecutive pieces.  Usually one piece per
/// segment; with padded channels (PaddedImage) one piece per tap, without padding.
struct FilterSegments {
  FastDivisor padded;  ///< divisor: columns per piece, with padding
  int32_t pieces;      ///< per segment
  int32_t elems;       ///< per piece, without padding
};

struct ConvArgs {
  Output out;  ///< written tensor as one matrix
  mp_dtype_t dtype;
  const void *image;  ///< tensor of the patches: x; dgrad: dy
  const void *other;  ///< filter; wgrad: dy
  PatchMap patches;   ///< dgrad: ConvProduct completes it per stride phase
  FilterMap filter;
  int32_t groups;
  int32_t group_c, group_k;         ///< channels per group
  int64_t filter_elems;             ///< elements per output channel
  StridePhases phases_h, phases_w;  ///< dgrad
  TileScheduler scheduler;          ///< batch item: group; dgrad: group and stride phase
  int64_t slice_k;                  ///< k per slice; without split-k all of k
  float *partial_sums;              ///< [slice][out.m][out.n]; NULL without split-k
  bool image_is_aligned;            ///< every segment that is read begins 16-byte aligned
  bool other_is_aligned;            ///< same for the filter in fprop
  FilterSegments written;           ///< wgrad
};

/// Position in the output of adjacent columns of a product.
struct OutputCoord {
  int64_t row, col;  ///< in args.out
  int valid;         ///< columns to store; none if <= 0
};

/// Matrix product of one group (dgrad: of one group and stride phase): extents and positions.
template <mp_conv_op_t op>
class ConvProduct {
  static constexpr bool kIsDgrad = op == MP_CONV_DGRAD, kIsWgrad = op == MP_CONV_WGRAD;

 public:
  MP_DEVICE ConvProduct(const ConvArgs &args, int64_t item)
      : patches(args.patches),
        filter(args.filter),
        args_(args),
        group_(static_cast<int32_t>(item % args.groups)) {
    if constexpr (kIsDgrad) set_phase(static_cast<int32_t>(item / args.groups));
  }

  MP_DEVICE int64_t m() const { return kIsWgrad ? args_.group_k : patches.num_rows; }
  MP_DEVICE int64_t n() const {
    return kIsWgrad ? patches.segments.extent() : kIsDgrad ? args_.group_c : args_.group_k;
  }
  MP_DEVICE int64_t k() const { return kIsWgrad ? patches.num_rows : patches.segments.extent(); }

  // First element of this group's channels in each tensor.
  MP_DEVICE int64_t image_elem() const {
    return int64_t{group_} * (kIsDgrad ? args_.group_k : args_.group_c);
  }
  MP_DEVICE int64_t filter_elem() const {
    return int64_t{group_} * args_.group_k * args_.filter_elems;
  }
  MP_DEVICE int64_t dy_elem() const { return int64_t{group_} * args_.group_k; }
  MP_DEVICE int64_t dy_ld() const { return int64_t{args_.groups} * args_.group_k; }

  /// Returns the position of kRun columns from `col`, a multiple of kRun.
  template <int kRun>
  MP_DEVICE OutputCoord output_coord(int64_t row, int64_t col) const {
    static_assert(kVec % kRun == 0, "or it would go beyond a tap's padded channels");
    if (row >= m()) return {0, 0, 0};
    if constexpr (kIsWgrad) {
      const FilterSegments &written = args_.written;
      const Quotient segment = patches.segments.padded.divide(static_cast<int32_t>(col));
      const Quotient piece = written.padded.divide(segment.remainder);
      const bool inside = col < n() && piece.quotient < written.pieces;
      return {group_ * int64_t{args_.group_k} + row,
              (int64_t{segment.quotient} * written.pieces + piece.quotient) * written.elems +
                  piece.remainder,
              inside ? min_of(written.elems - piece.remainder, kRun) : 0};
    } else {
      const int64_t first_col = group_ * n();
      const int valid = static_cast<int>(min_of<int64_t>(n() - col, kRun));
      if constexpr (!kIsDgrad) return {row, first_col + col, valid};
      const Quotient image = patches.grid_pixels.divide(static_cast<int32_t>(row));
      const Quotient line = patches.grid_w.divide(image.remainder);
      const int32_t h = line.quotient * args_.phases_h.stride + residue_h_;
      const int32_t w = line.remainder * args_.phases_w.stride + residue_w_;
      const bool inside = h < args_.phases_h.extent && w < args_.phases_w.extent;
      return {(int64_t{image.quotient} * args_.phases_h.extent + h) * args_.phases_w.extent + w,
              first_col + col, inside ? valid : 0};
    }
  }

  // Copies in dgrad, where each stride phase changes them; otherwise references to the arguments.
  std::conditional_t<kIsDgrad, PatchMap, const PatchMap &> patches;
  std::conditional_t<kIsDgrad, FilterMap, const FilterMap &> filter;

 private:
  MP_DEVICE void set_phase(int32_t number) {
    residue_h_ = number / args_.phases_w.count;
    residue_w_ = number % args_.phases_w.count;
    const PhaseTaps h(args_.phases_h, residue_h_), w(args_.phases_w, residue_w_);
    patches.offset_h = h.offset;
    patches.offset_w = w.offset;
    patches.segments.taps_h = h.count;
    patches.segments.taps_w = w.count;
    filter.first = h.first * filter.step_h + w.first * filter.step_w;
    filter.step_h *= args_.phases_h.tap_step;
    filter.step_w *= args_.phases_w.tap_step;
  }

  const ConvArgs &args_;
  const int32_t group_;
  int32_t residue_h_ = 0, residue_w_ = 0;
};

// ---------------------------------------------------------------------------- launch

/// Calls f(Value<op>{}) for the pass.
template <class F>
void with_conv_op(mp_conv_op_t op, const F &f) {
  if (op == MP_CONV_FPROP)
    f(Value<MP_CONV_FPROP>{});
  else if (op == MP_CONV_DGRAD)
    f(Value<MP_CONV_DGRAD>{});
  else
    f(Value<MP_CONV_WGRAD>{});
}

/// Launches the depthwise kernel; `args` needs neither scheduler nor slice_k.
void launch_conv_depthwise(const ConvPlan &, const ConvProblem &, const Device &, ConvArgs,
                           mp_stream_t);
/// Enqueues the copies of a plan, if it has any, at the beginning of the workspace: of the image,
/// and in fprop of the filter.  Returns the problem that reads them.
ConvProblem launch_padded_image(const Device &, const ConvProblem &, const PaddedImage &,
                                void *workspace, mp_stream_t);
/// The same for windows; `padded` has the addresses of the copies.
void launch_copy_windows(const Device &, const ConvProblem &, const PaddedImage &,
                         const ConvProblem &padded, mp_stream_t);
/// wgrad of windows: stores dfilter, given the sums that `padded` has written.
void launch_store_windows(const Device &, const ConvProblem &, const PaddedImage &,
                          const ConvProblem &padded, mp_stream_t);
void launch_conv_wmma(const ConvPlan &, mp_conv_op_t, const Device &, const ConvArgs &,
                      mp_stream_t);
void launch_conv_simt(const ConvPlan &, mp_conv_op_t, const Device &, const ConvArgs &,
                      mp_stream_t);

}  // namespace mp::MP_TARGET
