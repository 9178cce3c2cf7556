// Shared code of the experimental mp_*_kernel_info: supported kernels, ranked, followed by
// unsupported ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capi/check.h"
#include "capi/gemm_tuning.h"
#include "kernels/conv/problem.h"

namespace mp {

template <>
inline constexpr uint32_t kFirstSize<mp_kernel_info_t> = 40;

inline double predicted_us(const GemmPlan &choice) {
  return choice.predicted_us;
}
inline double predicted_us(const ConvPlan &choice) {
  return choice.gemm.predicted_us;
}

/// Returns entry `index` of the list of kernels.
/// @param device  device of the predicted times
/// @param names   names of all kernels
/// @param find    (name, &choice, &why), like find_gemm
template <class Choice, class Find>
mp_kernel_info_t kernel_info(const Device &device, int32_t index, const std::vector<Choice> &ranked,
                             std::span<const char *const> names, const Find &find) {
  mp_kernel_info_t info{};
  info.is_estimated = is_estimated(gemm_tuning(), device) ? 1 : 0;
  if (static_cast<size_t>(index) < ranked.size()) {
    const Choice &choice = ranked[static_cast<size_t>(index)];
    info.name = choice.name;
    info.predicted_us = predicted_us(choice);
    info.workspace_bytes = choice.workspace_bytes;
    return info;
  }
  size_t before = static_cast<size_t>(index) - ranked.size();
  for (const char *const name : names) {
    Choice choice;
    if (find(name, &choice, &info.why_not)) continue;
    info.name = name;
    if (before-- == 0) return info;
  }
  fail(MP_ERROR_NOT_FOUND, "index = ", index, " is outside [0, ", names.size(), "): ", names.size(),
       " kernels are available");
}

}  // namespace mp
