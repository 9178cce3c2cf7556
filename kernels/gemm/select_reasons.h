// Reasons why a plan takes longer than it could, in the words of the log.
#pragma once

#include <string>

#include "kernels/gemm/plan.h"

namespace mp {

/// Returns a property of A and B that the caller can change and that may slow the product down,
/// e.g. "ld_b = 7 is not a multiple of 8"; empty if there is none.
std::string slow_path_reason(const GemmShape &shape, const Device &device);
/// The shape without that property.
GemmShape without_slow_path(const GemmShape &shape, const Device &device);
/// Returns the reason and the two predicted times if the plan is slower by a fifth or more, else
/// "".
std::string if_slower(const std::string &reason, double us, double faster_us);
/// Returns the reason why another workspace, or a D that TMA can store, would be faster by a fifth;
/// else "".
std::string lost_time_reason(const OutputShape &out, const GemmPlan &plan,
                             const PlanRequest &request);
/// Part of slow_path_reason that holds for every problem of a 16-bit type.
std::string why_no_tensor_cores(mp_dtype_t dtype, const Device &device);

/// Returns a reason that the caller can change why plan_gemm_grouped fails though slow_path_reason
/// is empty for every item; else "".
std::string grouped_slow_path_reason(const GemmGroup &group, const Device &device,
                                     size_t workspace_bytes);

}  // namespace mp
