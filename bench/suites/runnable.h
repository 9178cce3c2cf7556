// The kernels that can run a problem.
#pragma once

#ifndef MP_ENABLE_EXPERIMENTAL
#error "mp_kernel_info_t is experimental"
#endif

#include <map>
#include <string>
#include <vector>

#include "bench/common.h"

namespace mpbench {

/// Returns a plan that names a kernel, which lives as long as the program; NULL for NULL.
inline const mp_plan_t *named_plan(const char *kernel) {
  static std::map<std::string, mp_plan_t> plans;
  if (kernel == nullptr) return nullptr;
  return &plans.try_emplace(kernel, mp_plan_default(kernel)).first->second;
}

/// @param kernel  NULL: the library's choice
template <typename Desc>
Desc with_kernel(Desc desc, const char *kernel) {
  desc.plan = named_plan(kernel);
  return desc;
}

struct Runnable {
  std::vector<const char *> kernels;  ///< the library's choice first
  double predicted_us = 0;            ///< for the first kernel; 0 = unknown
};

/// @param ask  calls mp_*_kernel_info for the kernel with this index
template <typename Ask>
Runnable runnable_kernels(Ask ask) {
  Runnable found;
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  for (int32_t index = 0;; ++index) {
    const mp_status_t status = ask(index, &info);
    if (status == MP_ERROR_NOT_FOUND) return found;
    check(status);
    if (info.reason != nullptr) return found;  // no later kernel can run it either
    found.kernels.push_back(info.name);
    if (index == 0) found.predicted_us = info.predicted_us;
  }
}

}  // namespace mpbench
