// What the wgmma convolution kernels are launched with.
//
// Apart from the kernels, so that what fills it in does not compile them once more.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/conv/im2col.h"
#include "kernels/gemm/wgmma_args.h"

namespace mp::MP_TARGET {

/// A tap and the first of 64 of its channels.
struct TapBlock {
  int32_t row, column;  ///< of the tap
  int32_t channel;
  int32_t w_offset, h_offset;  ///< from the tap that the image's map begins with
};

/// The direction of taps and channels, each tap padded to whole blocks.
struct TapBlocks {
  int32_t taps;
  int32_t channels;               ///< of a tap
  FastDivisor padded;             ///< by channels, padded
  FastDivisor across;             ///< by taps in a row
  int32_t first, next, next_row;  ///< of the taps in the filter: number, and steps
  int32_t first_w, first_h;
  int32_t step_w, step_h;  ///< dgrad: backwards

  /// `index`: a multiple of 64.  Past the last tap: channels that no image has.
  MP_DEVICE TapBlock at(int32_t index) const {
    const Quotient run = padded.divide(index);
    if (run.quotient >= taps) return {0, 0, padded.divisor, 0, 0};
    const Quotient place = across.divide(run.quotient);
    return {place.quotient, place.remainder, run.remainder, first_w + place.remainder * step_w,
            first_h + place.quotient * step_h};
  }
};

/// Where the filter stands, as the image's map counts.
struct FilterOrigin {
  int32_t w, h, n;
};

struct FilterOrigins {
  FastDivisor of_image, of_row;
  int32_t first_w, first_h;
  int32_t stride_w, stride_h;

  MP_DEVICE FilterOrigin at(int32_t number) const {
    const Quotient image = of_image.divide(number);
    const Quotient row = of_row.divide(image.remainder);
    return {first_w + row.remainder * stride_w, first_h + row.quotient * stride_h, image.quotient};
  }
};

struct ConvWgmmaArgs : WgmmaArgs {
  TapBlocks taps;
  FilterOrigins places;

  MP_DEVICE const TapBlocks &taps_of(int32_t) const { return taps; }
};

/// The pixels of dx, in one direction, that have the same remainder by the stride.
struct StridePhase {
  int32_t residue;
  FastDivisor across;  ///< by the number of taps that reach them, or by 1
  int32_t taps;        ///< that number
  int32_t first;       ///< what the first of these adds to the number of a tap in the filter
  int32_t offset;      ///< where it reads, from the tap that the image's map begins with
};

/// Sorted, those with the most taps first, so that no long sum begins last.
struct StridePhases {
  int32_t count;
  int32_t extent, stride;  ///< of dx
  StridePhase at[kMaxIm2colStride];
};

/// dgrad with a stride: a batch item is a class of columns in a class of rows.
struct DgradWgmmaArgs : ConvWgmmaArgs {
  StridePhases h, w;
  FastDivisor classes;                    ///< by those of columns
  TensorMap d_columns[kMaxIm2colStride];  ///< dx, of one class of columns

  MP_DEVICE const StridePhase &phase_h(int32_t item) const {
    return h.at[classes.divide(item).quotient];
  }
  MP_DEVICE const StridePhase &phase_w(int32_t item) const {
    return w.at[classes.divide(item).remainder];
  }

  MP_DEVICE int32_t k_of(int32_t item) const {
    return phase_h(item).taps * phase_w(item).taps * taps.padded.divisor;
  }
  MP_DEVICE TapBlocks taps_of(int32_t item) const {
    const StridePhase &rows = phase_h(item), &columns = phase_w(item);
    TapBlocks own = taps;
    own.taps = rows.taps * columns.taps;
    own.across = columns.across;
    own.first = rows.first + columns.first;
    own.first_w = columns.offset;
    own.first_h = rows.offset;
    return own;
  }
};

void launch_conv_wgmma_kernel(const ConvPlan &, mp_conv_op_t, const Device &, const ConvWgmmaArgs &,
                              mp_stream_t);
void launch_dgrad_wgmma_kernel(const ConvPlan &, const Device &, const DgradWgmmaArgs &,
                               mp_stream_t);

}  // namespace mp::MP_TARGET
