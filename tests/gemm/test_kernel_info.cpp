// mp_gemm_kernel_info and mp_conv2d_kernel_info: predicted times, or reasons of unsupported
// kernels.
#define MP_ENABLE_EXPERIMENTAL
#include <functional>
#include <set>

#include "tests/support/named_plan.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// The two queries about a problem.
struct Queries {
  std::function<mp_status_t(int32_t, mp_kernel_info_t *)> info;
  std::function<mp_status_t(const char *)> force;
};

/// @param op  the pass of a convolution; else none
template <class Desc, class Info, class Bytes, class... Op>
Queries queries_of(const Desc &desc, Info kernel_info, Bytes workspace_size, Op... op) {
  return {[=](int32_t i, mp_kernel_info_t *info) {
            return kernel_info(context(), &desc, op..., i, info);
          },
          [=](const char *name) {
            Desc forced = desc;
            forced.plan = named_plan(name);
            size_t bytes;
            return workspace_size(context(), &forced, op..., nullptr, &bytes);
          }};
}
Queries queries_of(const mp_gemm_desc_t &desc) {
  return queries_of(desc, mp_gemm_kernel_info, mp_gemm_workspace_size);
}
Queries queries_of(const mp_conv2d_desc_t &desc, mp_conv_op_t op) {
  return queries_of(desc, mp_conv2d_kernel_info, mp_conv2d_workspace_size, op);
}

std::vector<mp_kernel_info_t> all_kernels(const Queries &queries) {
  std::vector<mp_kernel_info_t> all;
  auto info = initialized<mp_kernel_info_t>();
  while (queries.info(static_cast<int32_t>(all.size()), &info) == MP_SUCCESS) all.push_back(info);
  return all;
}

/// Supported kernels come first, by predicted time; the others have the reason that a call which
/// names them reports.
void check_kernels(const Queries &queries, size_t expected) {
  const std::vector<mp_kernel_info_t> all = all_kernels(queries);
  CHECK(all.size() == expected);
  std::set<std::string> names;
  size_t runnable = 0;
  double slowest_us = 0;
  for (size_t i = 0; i < all.size(); i++) {
    const mp_kernel_info_t &kernel = all[i];
    CAPTURE(i, kernel.name);
    names.insert(kernel.name);
    if (kernel.reason == nullptr) {
      CHECK(runnable++ == i);
      CHECK(kernel.predicted_us >= slowest_us);
      slowest_us = kernel.predicted_us;
      CHECK(queries.force(kernel.name) == MP_SUCCESS);
    } else {
      CHECK(kernel.predicted_us == 0);
      CHECK(kernel.workspace_bytes == 0);
      CHECK(queries.force(kernel.name) == MP_ERROR_UNSUPPORTED);
      CHECK_THAT(mp_last_error(), Catch::Matchers::ContainsSubstring(kernel.reason));
    }
  }
  CHECK(names.size() == all.size());
  CHECK(runnable > 0);
}

}  // namespace

TEST_CASE("kernel info: every GEMM kernel has a rank or a reason", "[gemm][short]") {
  const size_t kernels =
      all_kernels(queries_of(mp_gemm_desc_default(256, 256, 256, MP_FP16, MP_FP16))).size();
  CHECK(kernels > 50);
  for (const mp_dtype_t dtype : kDtypes) {
    for (const int64_t k : {int64_t{1}, int64_t{63}, int64_t{4096}}) {
      CAPTURE(dtype, k);
      check_kernels(queries_of(mp_gemm_desc_default(200, 96, k, dtype, MP_FP32)), kernels);
    }
  }
}

TEST_CASE("kernel info: every convolution kernel has a rank or a reason", "[conv][short]") {
  mp_conv2d_desc_t desc = mp_conv2d_desc_default(2, 14, 14, 32, 32, 3, 3, MP_FP16);
  for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD}) {
    desc.groups = 1;
    const size_t kernels = all_kernels(queries_of(desc, op)).size();
    CHECK(kernels > 50);
    for (const int32_t groups : {1, 4, 32}) {
      CAPTURE(op, groups);
      desc.groups = groups;
      check_kernels(queries_of(desc, op), kernels);
    }
  }
}
