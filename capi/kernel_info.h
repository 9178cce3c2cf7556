// Shared code of the experimental mp_*_kernel_info: supported kernels, ranked, followed by
// unsupported ones.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "capi/plan_cache.h"

namespace mp {

template <>
inline constexpr uint32_t kFirstSize<mp_kernel_info_t> = 40;

/// Returns the entry of a ranking, or after its end a kernel that cannot run the problem.
/// @param names     names of all kernels
/// @param can_plan  (name, &why) -> bool
template <class Entry, class CanPlan>
mp_kernel_info_t kernel_info(const Context &context, int32_t index,
                             const std::vector<Entry> &ranked, std::span<const char *const> names,
                             const CanPlan &can_plan) {
  mp_kernel_info_t info{};
  info.is_estimated = is_estimated(gemm_tuning(), context.device) ? 1 : 0;
  if (static_cast<size_t>(index) < ranked.size()) {
    const Entry &entry = ranked[static_cast<size_t>(index)];
    MP_COPY_FIELDS(info, entry, name, predicted_us, workspace_bytes);
    return info;
  }
  size_t before = static_cast<size_t>(index) - ranked.size();
  for (const char *const name : names) {
    if (can_plan(name, &info.reason)) continue;
    info.name = name;
    if (before-- == 0) return info;
  }
  fail(MP_ERROR_NOT_FOUND, "index = ", index, " is outside [0, ", names.size(), "): ", names.size(),
       " kernels are available");
}

/// Returns the next kernels after that of a plan.
/// @param query  query.info(context, index) -> mp_kernel_info_t
template <class Query>
std::vector<PlanCandidate> next_candidates(const Query &query, const Context &context,
                                           const char *name) {
  std::vector<PlanCandidate> next;
  for (int32_t index = 0; next.size() < kPlanCandidates; index++) {
    const mp_kernel_info_t info = query.info(context, index);
    if (std::strcmp(info.name, name) != 0)
      next.push_back({info.name, info.reason, info.predicted_us, info.workspace_bytes});
  }
  return next;
}

}  // namespace mp
