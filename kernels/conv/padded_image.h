// Padded copy of an image whose channels are not a multiple of 8, such as RGB, for 16-byte loads.
// Zeros follow the channels of each pixel and are to the left and right of each image row.  Pure:
// selection predicts the time of the copy and its workspace, the launch makes it.
//
// With an even stride four channels suffice: rows of taps then begin at multiples of 8 elements.
#pragma once

#include "kernels/conv/implicit_gemm.h"

namespace mp {

struct PaddedImage {
  int32_t channels;     ///< per pixel, with padding
  int32_t width;        ///< pixels per image row: first tap of a row of patches to last tap
  size_t image_bytes;   ///< a multiple of 256; 0: no copy
  size_t filter_bytes;  ///< copy of the filter with the same channels in fprop, else 0

  size_t bytes() const { return image_bytes + filter_bytes; }
  double mb() const { return static_cast<double>(bytes()) * 1e-6; }
  int launches() const { return (image_bytes != 0) + (filter_bytes != 0); }
};

/// Returns the copy for fprop and wgrad in 16 bits with one group; no copy if the image itself
/// allows 16-byte loads.
PaddedImage padded_image(const ConvProblem &);

/// Returns the problem that reads the copies at the start of the workspace: image, then filter.
ConvProblem with_padded_image(const ConvProblem &, const PaddedImage &, void *workspace);

}  // namespace mp
