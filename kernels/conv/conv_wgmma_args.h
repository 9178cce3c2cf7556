// Arguments of the wgmma convolution kernels, which conv.cu fills without compiling the kernels.
#pragma once

#include "kernels/conv/conv_args.h"
#include "kernels/gemm/wgmma_args.h"

namespace mp::MP_TARGET {

/// Block of 64 channels of a tap.
struct TapBlock {
  int32_t row, column;         ///< position of the tap
  int32_t channel;             ///< first channel
  int32_t w_offset, h_offset;  ///< im2col offsets: distance from the map's first tap
};

/// The direction of taps and channels, each tap padded to a multiple of 64 channels.
struct TapBlocks {
  int32_t taps;
  int32_t channels;               ///< per tap
  FastDivisor padded;             ///< divisor: channels per tap, with padding
  FastDivisor across;             ///< divisor: taps per row
  int32_t first, next, next_row;  ///< index of the first tap, and steps to the next tap and row
  int32_t first_w, first_h;       ///< im2col offsets of the first tap
  int32_t step_w, step_h;         ///< steps of these offsets; dgrad: negative

  /// Returns the block at `index`, a multiple of 64.  Past the last tap, its channels are out of
  /// bounds and are loaded as zeros.
  MP_DEVICE TapBlock at(int32_t index) const {
    const Quotient block = padded.divide(index);
    if (block.quotient >= taps) return {0, 0, padded.divisor, 0, 0};
    const Quotient tap = across.divide(block.quotient);
    return {tap.quotient, tap.remainder, block.remainder, first_w + tap.remainder * step_w,
            first_h + tap.quotient * step_h};
  }
};

/// Filter origin in coordinates of the image's map.
struct FilterOrigin {
  int32_t w, h, n;
};

/// Filter origins, numbered row by row and image by image.
struct FilterOrigins {
  FastDivisor of_image, of_row;  ///< divisors: origins per image, per row
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
  FilterOrigins origins;

  MP_DEVICE const TapBlocks &taps_of(int32_t) const { return taps; }
};

/// A stride phase along an axis.
struct WgmmaPhase {
  int32_t residue;
  FastDivisor across;  ///< divisor: taps, at least 1
  int32_t taps;        ///< number of taps that reach the pixels
  int32_t first;       ///< contribution of the first of them to the index of a tap
  int32_t offset;      ///< im2col offset of the first of them
};

/// Stride phases along an axis, in order of decreasing taps, so that the longest sums begin first.
struct WgmmaPhases {
  int32_t count;
  int32_t extent, stride;  ///< extent of dx; stride of the convolution
  WgmmaPhase at[kMaxIm2colStride];
};

/// Arguments of a strided dgrad: a batch item is a row phase and a column phase.
struct DgradWgmmaArgs : ConvWgmmaArgs {
  WgmmaPhases h, w;
  FastDivisor phases;                    ///< divisor: number of column phases
  TensorMap d_phases[kMaxStoredPhases];  ///< dx, one map per batch item; StorePath::tma

  MP_DEVICE const WgmmaPhase &phase_h(int32_t item) const {
    return h.at[phases.divide(item).quotient];
  }
  MP_DEVICE const WgmmaPhase &phase_w(int32_t item) const {
    return w.at[phases.divide(item).remainder];
  }

  MP_DEVICE int32_t k_of(int32_t item) const {
    return phase_h(item).taps * phase_w(item).taps * taps.padded.divisor;
  }
  MP_DEVICE TapBlocks taps_of(int32_t item) const {
    const WgmmaPhase &rows = phase_h(item), &columns = phase_w(item);
    TapBlocks own = taps;
    own.taps = rows.taps * columns.taps;
    own.across = columns.across;
    own.first = rows.first + columns.first;
    own.first_w = columns.offset;
    own.first_h = rows.offset;
    return own;
  }
};

static_assert(sizeof(DgradWgmmaArgs) <= 4096, "limit of kernel arguments before CUDA 12.1");

void launch_conv_wgmma_kernel(const ConvPlan &, mp_conv_op_t, const Device &, const ConvWgmmaArgs &,
                              mp_stream_t);
void launch_dgrad_wgmma_kernel(const ConvPlan &, const Device &, const DgradWgmmaArgs &,
                               mp_stream_t);

}  // namespace mp::MP_TARGET
