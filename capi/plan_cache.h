// Plans by shape: of a named kernel, or the fastest, which the calling thread keeps in a cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/cache.h"
#include "base/lifetime.h"
#include "capi/context.h"
#include "kernels/gemm/plan.h"

namespace mp {

template <class Shape>
struct PlanKey {
  uint64_t context;  ///< Context::id: contexts may differ in their limits
  size_t workspace_bytes;
  Shape shape;

  bool operator==(const PlanKey &) const = default;
  uint64_t hash() const {
    Hash hash{context};
    hash.mix(workspace_bytes);
    hash.mix(shape.hash());
    return hash.sum;
  }
};

/// Returns the tuning table in the file MP_GEMM_TUNING, or else the built-in one.  The first call
/// reads the file, and logs an invalid one.
const GemmTuning &gemm_tuning();

inline PlanRequest plan_request(const Context &context, size_t workspace_bytes = SIZE_MAX) {
  return {context.device, gemm_tuning(), workspace_bytes};
}

/// Returns the plan that make(request) returns, from the cache if the thread has used the shape
/// before.
template <class Plan, class Shape, class Make>
Plan cached_plan(const Context &context, const Shape &shape, size_t workspace_bytes,
                 const Make &make) {
  return ThreadLocal<Cache<PlanKey<Shape>, Plan>>::get().find(
      {context.id, workspace_bytes, shape},
      [&] { return make(plan_request(context, workspace_bytes)); });
}

/// Checks the kernel name of a call that launches nothing.
inline void require_known_kernel(const char *kernel, std::span<const char *const> names) {
  const auto is_kernel = [&](const char *name) { return std::strcmp(name, kernel) == 0; };
  MP_REQUIRE(kernel == nullptr || std::any_of(names.begin(), names.end(), is_kernel),
             MP_ERROR_NOT_FOUND, "kernel = ", kernel, " is unknown");
}

/// Fails: plan_named_gemm or plan_named_conv did, for that reason.
[[noreturn]] inline void fail_named_plan(const char *kernel, const char *why) {
  MP_REQUIRE(why != nullptr, MP_ERROR_NOT_FOUND, "kernel = ", kernel, " is unknown");
  fail(MP_ERROR_UNSUPPORTED, "kernel = ", kernel, " ", why);
}

inline void require_workspace(const char *kernel, size_t needed, size_t workspace_bytes) {
  MP_REQUIRE(needed <= workspace_bytes, MP_ERROR_WORKSPACE_TOO_SMALL,
             "workspace_bytes = ", workspace_bytes, ", but kernel = ", kernel, " requires ",
             needed);
}

/// Returns the plan of mp_gemm, mp_gemm_batched (GemmShape) or mp_gemm_ragged (RaggedShape).
/// @param kernel           NULL = the fastest
/// @param workspace_bytes  limit
template <class Shape>
GemmPlan find_plan(const Context &context, const Shape &shape, const char *kernel,
                   size_t workspace_bytes) {
  if (kernel == nullptr)
    return cached_plan<GemmPlan>(context, shape, workspace_bytes, [&](const PlanRequest &request) {
      return plan_gemm(shape, request);
    });
  GemmPlan plan;
  const char *why;
  if (!plan_named_gemm(shape, plan_request(context, workspace_bytes), kernel, &plan, &why))
    fail_named_plan(kernel, why);
  require_workspace(kernel, plan.workspace.bytes, workspace_bytes);
  return plan;
}

}  // namespace mp
