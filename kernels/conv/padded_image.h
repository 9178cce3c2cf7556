// A copy of an image whose channels are no multiple of 8, as RGB has them, that kernels can read by 16 bytes: zeros
// stand behind the channels of each pixel, and left and right of each line.  Pure: selection prices the copy and
// asks for its workspace, the launch makes it.
//
// Where the stride is even, four channels are enough: rows of taps then begin at every eighth element.
#pragma once

#include "kernels/conv/implicit_gemm.h"

namespace mp {

struct PaddedImage {
  int32_t channels;     ///< of a pixel
  int32_t width;        ///< of a line: from the first patch's first tap to the last one's last
  size_t image_bytes;   ///< a multiple of 256; 0 = there is no copy
  size_t filter_bytes;  ///< of fprop, where the filter is as the image is; else 0

  size_t bytes() const { return image_bytes + filter_bytes; }
  double mb() const { return static_cast<double>(bytes()) * 1e-6; }
  int launches() const { return (image_bytes != 0) + (filter_bytes != 0); }
};

/// Of fprop and wgrad, 16-bit, in one group; none where patches are read by 16 bytes as they are.
PaddedImage padded_image(const ConvProblem &);

/// The problem that reads the copies, which are at the head of the workspace: the image's, then the filter's.
ConvProblem with_padded_image(const ConvProblem &, const PaddedImage &, void *workspace);

}  // namespace mp
