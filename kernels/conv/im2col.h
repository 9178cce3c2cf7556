// Convolutions whose patches TMA reads in im2col mode, as products of matrices.  Pure.
//
// TMA reads the pixels of one tap at a time, 64 channels of each.  In the direction of taps and
// channels the product therefore consists of whole blocks of 64 per tap.  Past the last channel of
// a tap both operands are zero, or the output lacks the column.
#pragma once

#include "kernels/conv/conv_problem.h"
#include "kernels/gemm/wgmma_store.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

constexpr int32_t kTapBlock = 64;
constexpr int32_t kMaxIm2colStride = 8;

/// Stride phases with tensor maps of dx.  The maps are arguments of the kernel, at most 4 KiB.
constexpr int32_t kMaxStoredPhases = 16;

/// NULL if im2col TMA can read the image, else the reason.
const char *why_no_im2col(const ConvProblem &);

/// Returns the product as a GEMM without operands.  A strided dgrad is a batch of its stride
/// phases, each as large as the largest.
GemmProblem im2col_gemm(const ConvProblem &);

/// Returns the im2col map of the image: x, or dy in dgrad.  The filter has one origin per pixel of
/// y, or of a stride phase of dx; all phases share these origins and begin at different taps.
Im2colSpec im2col_spec(const ConvProblem &, int32_t pixels);

/// Store path of the output without a split.  The problem satisfies why_no_im2col.
StorePath im2col_store(const ConvProblem &);

/// A filter: a matrix per tap, whose rows are output channels.
TensorMapSpec filter_spec(const ConvShape &, const void *filter, mp_dtype_t, int box_rows);
/// Strided dgrad: the pixels of dx in one phase, a subtile at a time.
Im2colSpec phase_spec(const Output &, const ConvShape &, int32_t residue_h, int32_t residue_w);
/// Strided dgrad: C or aux, a subtile of one phase at a time.
Im2colSpec phase_source_spec(const Output &, const ConvShape &);

}  // namespace mp
