// Why a choice takes longer than it could, in the words of the log.
#pragma once

#include <string>

#include "kernels/gemm/problem.h"

namespace mp {

/// Empty, or a property of A and B, which the caller can change, that may slow `problem` down
/// ("ldb = 7 is not a multiple of 8").
std::string slow_path_reason(const GemmProblem &problem, const Device &device, bool aligned);
/// The problem without that property, for 16-byte aligned A and B.
GemmProblem without_slow_path(const GemmProblem &problem, const Device &device);
/// The reason and the two predicted times if the choice is slower by a fifth or more, else empty.
std::string if_slower(const std::string &reason, double us, double faster_us);
/// The same as slow_path_reason of what plan_gemm found: a larger workspace, or a D that TMA can store, would be faster by a fifth.
std::string lost_time_reason(const Output &out, const GemmPlan &choice, const Device &device,
                             const GemmTuning &tuning, size_t workspace_bytes);
/// The part of slow_path_reason that holds for every problem of a 16-bit type.
std::string why_no_tensor_cores(mp_dtype_t dtype, const Device &device);

/// Empty, or the reason, which the caller can change, why choose_gemm_grouped finds no kernel though
/// slow_path_reason has nothing against any item; for the log.
std::string grouped_slow_path_reason(const GemmGroup &group, const Device &device,
                                     size_t workspace_bytes);

}  // namespace mp
