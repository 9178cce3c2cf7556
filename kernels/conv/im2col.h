// Which convolutions im2col TMA brings to the wgmma loop, and as which product of matrices.  Pure.
//
// TMA brings the pixels of one tap at a time, 64 channels of each.  So in the direction of taps and
// channels the product has as many whole blocks of 64 as each tap begins; what lies past a tap's
// last channel is zero in both operands, or a column that the output lacks.
#pragma once

#include "kernels/conv/implicit_gemm.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

constexpr int32_t kTapBlock = 64;
constexpr int32_t kMaxIm2colStride = 8;

/// Pixels of dx that leave a strided dgrad together: eight of a class, side by side.
constexpr int kLinePixels = 8;

/// NULL if im2col TMA can read its image, or why it cannot: one clause.
const char *why_no_im2col(const ConvProblem &);

/// The product as a GEMM without operands.  A strided dgrad is a batch with an item for each class of pixels,
/// all of them as large as the largest.
GemmProblem im2col_gemm(const ConvProblem &);

/// The image is x, or dy in dgrad.  The filter stands at each pixel of the other tensor; all classes of a
/// strided dgrad have the same places and begin at different taps.
Im2colSpec im2col_spec(const ConvProblem &, int32_t pixels);

}  // namespace mp
