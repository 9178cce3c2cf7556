// Names of the kernels that can run a problem, best first.  Include it after
// MP_ENABLE_EXPERIMENTAL.
#pragma once

#include <functional>
#include <vector>

#include "tests/support/named_plan.h"
#include "tests/support/testing.h"

namespace mptest {

/// info(index, &answer) has the contract of mp_gemm_kernel_info.
inline std::vector<const char *> runnable_kernels(
    const std::function<mp_status_t(int32_t, mp_kernel_info_t *)> &info) {
  std::vector<const char *> names;
  auto answer = initialized<mp_kernel_info_t>();
  while (info(static_cast<int32_t>(names.size()), &answer) == MP_SUCCESS &&
         answer.reason == nullptr) {
    names.push_back(answer.name);
  }
  return names;
}

inline std::vector<const char *> runnable_kernels(const mp_gemm_desc_t &desc) {
  return runnable_kernels([&desc](int32_t index, mp_kernel_info_t *answer) {
    return mp_gemm_kernel_info(context(), &desc, index, answer);
  });
}

inline std::vector<const char *> runnable_kernels(const mp_conv2d_desc_t &desc, mp_conv_op_t op) {
  return runnable_kernels([&desc, op](int32_t index, mp_kernel_info_t *answer) {
    return mp_conv2d_kernel_info(context(), &desc, op, index, answer);
  });
}

}  // namespace mptest
