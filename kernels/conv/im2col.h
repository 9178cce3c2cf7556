// Convolutions whose patches im2col TMA loads for the wgmma loop, and their matrix products.  Pure.
//
// A load contains 64 channels of one tap.  In the direction of taps and channels, each tap is
// therefore padded to a multiple of 64 channels: the padding is zero in both operands, or a column
// that the output lacks.
#pragma once

#include "kernels/conv/implicit_gemm.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

constexpr int32_t kTapBlock = 64;
constexpr int32_t kMaxIm2colStride = 8;

/// Pixels per TMA store of a strided dgrad: neighbors in a row of one stride phase of dx.
constexpr int kLinePixels = 8;

/// Returns NULL if im2col TMA supports the image, else the reason: one clause.
const char *why_no_im2col(const ConvProblem &);

/// Returns the product as a GEMM without operands.  A strided dgrad is a batch of its stride
/// phases, each as large as the largest.
GemmProblem im2col_gemm(const ConvProblem &);

/// Returns the im2col map of the image: x, or dy in dgrad.  The filter has one origin per pixel of
/// y, or of a stride phase of dx; all phases share these origins and begin at different taps.
Im2colSpec im2col_spec(const ConvProblem &, int32_t pixels);

}  // namespace mp
