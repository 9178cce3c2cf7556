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
  int32_t tap, channel;
  int32_t w_offset, h_offset;  ///< from the tap that the image's map begins with
};

/// The direction of taps and channels, each tap padded to whole blocks.
struct TapBlocks {
  int32_t taps;
  int32_t channels;    ///< of a tap
  FastDivisor padded;  ///< by channels, padded
  FastDivisor across;  ///< by taps in a row of the filter
  int32_t first_w, first_h;
  int32_t step_w, step_h;  ///< dgrad: backwards

  /// `index`: a multiple of 64.  Past the last tap: channels that no image has.
  MP_DEVICE TapBlock at(int32_t index) const {
    const Quotient run = padded.divide(index);
    if (run.quotient >= taps) return {taps, padded.divisor, 0, 0};
    const Quotient place = across.divide(run.quotient);
    return {run.quotient, run.remainder, first_w + place.remainder * step_w,
            first_h + place.quotient * step_h};
  }
};

/// Where the filter stands, as the image's map counts.
struct FilterPlace {
  int32_t w, h, n;
};

struct FilterPlaces {
  FastDivisor of_image, of_row;
  int32_t first_w, first_h;
  int32_t stride_w, stride_h;

  MP_DEVICE FilterPlace at(int32_t number) const {
    const Quotient image = of_image.divide(number);
    const Quotient row = of_row.divide(image.remainder);
    return {first_w + row.remainder * stride_w, first_h + row.quotient * stride_h, image.quotient};
  }
};

struct ConvWgmmaArgs : WgmmaArgs {
  TapBlocks taps;
  FilterPlaces places;
};

/// One type of tensors.
template <class T>
void launch_conv_wgmma_kernel(const ConvChoice &, mp_conv_op_t, const Device &,
                              const ConvWgmmaArgs &, mp_stream_t);

}  // namespace mp::MP_TARGET
