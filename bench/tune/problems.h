// The problems of the bench as selection sees them.  Their data are aligned, as all of mp_malloc are.
#pragma once

#include "bench/shapes/conv_shapes.h"
#include "kernels/conv/problem.h"

namespace mptune {

constexpr mp_dtype_t kDtype = MP_FP16;  // bf16 has the same rates
constexpr bool kAligned = true;

/// As capi makes it of a descriptor.
mp::GemmProblem problem_of(const mp_gemm_desc_t &desc);
/// The same; `shape` is of one group without dilation, as all of the bench's are.
mp::ConvProblem problem_of(const mpbench::ConvShape &shape);

}  // namespace mptune
