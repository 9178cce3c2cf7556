// mp_plan_t: plans that users keep.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "capi/defaults.h"
#include "capi/plan_cache.h"

namespace mp {

namespace {
constexpr int32_t kMaxSms = 1 << 16;  // of one device; bounds products of num_sms in selection
}

RequestedPlan::RequestedPlan(const mp_plan_t *user) : is_set_(user != nullptr) {
  if (!is_set_) return;
  plan_ = read_struct(user, "plan");
  MP_REQUIRE(std::memchr(plan_.kernel, 0, sizeof plan_.kernel) != nullptr,
             MP_ERROR_INVALID_ARGUMENT, "plan->kernel must be NUL-terminated");
  MP_REQUIRE(plan_.kernel[0] != 0, MP_ERROR_INVALID_ARGUMENT,
             "plan->kernel = \"\" must not be empty");
  require_not_negative(plan_.split_k, "plan->split_k");
  require_not_negative(plan_.num_sms, "plan->num_sms");
  MP_REQUIRE(plan_.num_sms <= kMaxSms, MP_ERROR_INVALID_ARGUMENT, "plan->num_sms = ", plan_.num_sms,
             " exceeds ", kMaxSms);
  require_zero(plan_.reserved0, "plan->reserved0");
}

RequestedPlan RequestedPlan::kernel_only() const {
  RequestedPlan only = *this;
  only.plan_.split_k = 0;
  return only;
}

void RequestedPlan::require_known(std::span<const char *const> names) const {
  const auto is_kernel = [&](const char *name) { return std::strcmp(name, plan_.kernel) == 0; };
  MP_REQUIRE(!is_set_ || std::any_of(names.begin(), names.end(), is_kernel), MP_ERROR_NOT_FOUND,
             "plan->kernel = ", plan_.kernel, " is unknown");
}

void RequestedPlan::finish(bool is_planned, const char *why, size_t workspace_bytes,
                           GemmPlan &plan) const {
  MP_REQUIRE(is_planned || why != nullptr, MP_ERROR_NOT_FOUND, "plan->kernel = ", plan_.kernel,
             " is unknown");
  MP_REQUIRE(is_planned, MP_ERROR_UNSUPPORTED, "plan->kernel = ", plan_.kernel, " ", why);
  MP_REQUIRE(workspace_bytes_of(plan) <= workspace_bytes, MP_ERROR_WORKSPACE_TOO_SMALL,
             "workspace_bytes = ", workspace_bytes, ", but plan->kernel = ", plan_.kernel,
             " requires ", workspace_bytes_of(plan));
  if (!is_complete()) return;
  MP_REQUIRE(plan.split_k == plan_.split_k, MP_ERROR_INVALID_ARGUMENT,
             "plan->split_k = ", plan_.split_k, " must be ", plan.split_k,
             " with plan->kernel = ", plan_.kernel);
  if (plan_.num_sms != 0) plan.num_sms = plan_.num_sms;
}

size_t workspace_bytes_of(const GemmPlan &plan) {
  return std::max(plan.workspace.bytes, plan.dbias ? plan.dbias->bytes : 0);
}

mp_plan_t stable_plan(const char *name, const GemmPlan &plan) {
  mp_plan_t stable{};
  std::string_view(name).copy(stable.kernel, sizeof stable.kernel - 1);
  stable.split_k = plan.split_k;
  stable.workspace_bytes = workspace_bytes_of(plan);
  stable.predicted_us = plan.predicted_us;
  stable.num_sms = plan.num_sms;
  return stable;
}

}  // namespace mp

mp_status_t mp_plan_init(mp_plan_t *plan, size_t struct_size, const char *kernel) {
  return mp::init(__func__, plan, "plan", struct_size, [&] {
    auto p = mp::zero_struct<mp_plan_t>();
    if (kernel != nullptr) std::string_view(kernel).copy(p.kernel, sizeof p.kernel - 1);
    return p;
  });
}
