// A copy of an image whose channels are not a multiple of 8, e.g. RGB, which kernels can read by 16
// bytes.  Zeros follow the channels of each pixel and pad each line on both sides.
//
// With an even stride four channels are enough: rows of taps then begin at every eighth element.
#pragma once

#include "kernels/conv/implicit_gemm.h"
#include "kernels/conv/plan.h"

namespace mp {

/// Copy of fprop and wgrad, 16-bit, in one group; none if patches are read by 16 bytes in place.
PaddedImage padded_image(const ConvProblem &);

/// The problem that reads the copies, which are at the beginning of the workspace: the image's,
/// then the filter's.  They have no addresses yet.
ConvProblem with_padded_image(const ConvProblem &, const PaddedImage &);

}  // namespace mp
