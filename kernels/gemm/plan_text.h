// Plans and tuning as text: reasons why a plan takes longer than it could, for the log, and the
// format of the constants of predicted times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/gemm/plan.h"

namespace mp {

/// Returns the blocks of a cluster and their common work, e.g. "2 blocks, which share an operand".
std::string cluster_text(const GemmPlan &plan);

/// Workspace of a plan with its dbias.
inline size_t workspace_bytes_of(const GemmPlan &plan) {
  return std::max(plan.workspace.bytes, plan.dbias ? plan.dbias->bytes : 0);
}

// ---------------------------------------------------------------------------- reasons

/// Returns a property of A and B that the caller can change and that may slow the product down,
/// e.g. "ld_b = 7 is not a multiple of 8"; empty if there is none.
std::string slow_path_reason(const GemmShape &shape, const Device &device);
/// Returns the reason and the two predicted times if the plan is slower by a fifth or more, else
/// "".
std::string if_slower(const std::string &reason, double us, double faster_us);
/// Returns the reason why another workspace, or a D that TMA can store, would be faster by a fifth;
/// else "".
std::string lost_time_reason(const OutputShape &out, const GemmPlan &plan,
                             const PlanRequest &request);

/// Returns a reason that the caller can change why plan_gemm_grouped fails though slow_path_reason
/// is empty for every item; else "".
std::string grouped_slow_path_reason(const GemmGroup &group, const Device &device,
                                     size_t workspace_bytes);

/// Part of slow_path_reason that holds for every problem of a 16-bit type.
std::string why_slow_dtype(mp_dtype_t dtype, const Device &device);
/// The shape without the property that slow_path_reason names.
GemmShape without_slow_path(const GemmShape &shape, const Device &device);

// ---------------------------------------------------------------------------- tuning

enum class DeviceClass;

/// Returns the built-in constants, replaced by those in `text`, whose format is in tuning.h.  If
/// `text` is not a valid table, returns NULL and sets `why` to one clause, "line 3: ...".
std::shared_ptr<const GemmTuning> parse_gemm_tuning(std::string_view text, std::string *why);

/// Returns the kernel of a line "fastest CALL KERNEL", or NULL.
const char *fastest_kernel(const GemmTuning &tuning, uint64_t call);

/// Returns the lines of `tuning` for one class and these kernels.  parse_gemm_tuning restores the
/// same bits from them.
std::string tuning_text(const GemmTuning &tuning, DeviceClass device_class,
                        std::span<const GemmKernel *const> kernels);

}  // namespace mp
