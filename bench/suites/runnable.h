// The kernels that can run a problem.
#pragma once

#ifndef MP_ENABLE_EXPERIMENTAL
#error "mp_kernel_info_t is experimental"
#endif

#include <vector>

#include "bench/common.h"

namespace mpbench {

struct Runnable {
  std::vector<const char *> kernels;  ///< the library's choice first
  double predicted_us = 0;            ///< of that; 0 = the library does not say
};

/// @param ask  mp_*_kernel_info of the problem, for the kernel with this index
template <typename Ask>
Runnable runnable_kernels(Ask ask) {
  Runnable found;
  mp_kernel_info_t info;
  MP_INIT_STRUCT(&info);
  for (int32_t index = 0;; ++index) {
    const mp_status_t status = ask(index, &info);
    if (status == MP_ERROR_NOT_FOUND) return found;
    check(status);
    if (info.why_not != nullptr) return found;  // those behind it cannot run it either
    found.kernels.push_back(info.name);
    if (index == 0) found.predicted_us = info.predicted_us;
  }
}

}  // namespace mpbench
