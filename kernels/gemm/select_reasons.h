// Reasons for the log: why a plan is slower than it could be.
#pragma once

#include <string>

#include "kernels/gemm/problem.h"

namespace mp {

/// Returns a property of A and B that the caller can change and that may slow `problem` down
/// ("ldb = 7 is not a multiple of 8"), or "".
std::string slow_path_reason(const GemmProblem &problem, const Device &device, bool aligned);
/// Returns the problem without that property, for 16-byte aligned A and B.
GemmProblem without_slow_path(const GemmProblem &problem, const Device &device);
/// Returns the reason and both predicted times if the plan is slower by a fifth, else "".
std::string if_slower(const std::string &reason, double us, double faster_us);
/// Returns why a plan of plan_gemm is slow, or "": a larger workspace, or a D that TMA can store,
/// would make it faster by a fifth.
std::string lost_time_reason(const Output &out, const GemmPlan &choice, const Device &device,
                             const GemmTuning &tuning, size_t workspace_bytes);
/// Returns the part of slow_path_reason that applies to every problem of a 16-bit type.
std::string why_no_tensor_cores(mp_dtype_t dtype, const Device &device);

/// Returns a reason, which the caller can remove, why choose_gemm_grouped finds no kernel although
/// slow_path_reason accepts every item, or "".  For the log.
std::string grouped_slow_path_reason(const GemmGroup &group, const Device &device,
                                     size_t workspace_bytes);

}  // namespace mp
