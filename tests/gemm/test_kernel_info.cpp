// mp_gemm_kernel_info and mp_conv2d_kernel_info: predicted times, or reasons of unsupported
// kernels.
#define MP_ENABLE_EXPERIMENTAL
#include <set>

#include "tests/support/named_plan.h"
#include "tests/support/testing.h"

using namespace mptest;

namespace {

/// Supported kernels come first, by predicted time; the others have the reason that a call which
/// names them reports.  Returns the number of kernels.
/// @param op  the pass of a convolution; else none
template <class Desc, class Info, class Bytes, class... Op>
size_t check_kernels(const Desc &desc, Info kernel_info, Bytes workspace_size, Op... op) {
  std::vector<mp_kernel_info_t> all;
  auto info = initialized<mp_kernel_info_t>();
  while (kernel_info(context(), &desc, op..., static_cast<int32_t>(all.size()), &info) ==
         MP_SUCCESS)
    all.push_back(info);
  const auto force = [&](const char *name) {
    Desc forced = desc;
    forced.plan = named_plan(name);
    size_t bytes;
    return workspace_size(context(), &forced, op..., nullptr, &bytes);
  };
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
      CHECK(force(kernel.name) == MP_SUCCESS);
    } else {
      CHECK(kernel.predicted_us == 0);
      CHECK(kernel.workspace_bytes == 0);
      CHECK(force(kernel.name) == MP_ERROR_UNSUPPORTED);
      CHECK_THAT(mp_last_error(), Catch::Matchers::ContainsSubstring(kernel.reason));
    }
  }
  CHECK(names.size() == all.size());
  CHECK(runnable > 0);
  return all.size();
}

}  // namespace

TEST_CASE("kernel info: every GEMM kernel has a rank or a reason", "[gemm][short]") {
  const auto check = [](int64_t m, int64_t n, int64_t k, mp_dtype_t dtype, mp_dtype_t dtype_cd) {
    CAPTURE(dtype, k);
    return check_kernels(mp_gemm_desc_default(m, n, k, dtype, dtype_cd), mp_gemm_kernel_info,
                         mp_gemm_workspace_size);
  };
  const size_t kernels = check(256, 256, 256, MP_FP16, MP_FP16);
  CHECK(kernels > 50);
  for (const mp_dtype_t dtype : kDtypes)
    for (const int64_t k : {1, 63, 4096}) CHECK(check(200, 96, k, dtype, MP_FP32) == kernels);
}

TEST_CASE("kernel info: every convolution kernel has a rank or a reason", "[conv][short]") {
  mp_conv2d_desc_t desc = mp_conv2d_desc_default(2, 14, 14, 32, 32, 3, 3, MP_FP16);
  for (const mp_conv_op_t op : {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD}) {
    std::set<size_t> numbers;
    for (const int32_t groups : {1, 4, 32}) {
      CAPTURE(op, groups);
      desc.groups = groups;
      numbers.insert(check_kernels(desc, mp_conv2d_kernel_info, mp_conv2d_workspace_size, op));
    }
    CHECK(numbers.size() == 1);
    CHECK(*numbers.begin() > 50);
  }
}
