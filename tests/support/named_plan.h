// Plans that force a kernel.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "mpcore.h"

namespace mptest {

/// Returns a plan that names a kernel, which lives as long as the program; NULL for NULL.
inline const mp_plan_t *named_plan(const char *kernel) {
  static std::mutex mutex;
  static std::map<std::string, mp_plan_t> plans;
  if (kernel == nullptr) return nullptr;
  const std::lock_guard lock(mutex);
  return &plans.try_emplace(kernel, mp_plan_default(kernel)).first->second;
}

}  // namespace mptest
