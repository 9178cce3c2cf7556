// Plans by shape: the one that a descriptor requests, or the fastest, which the calling thread
// keeps in a cache.  Plans as text: mp_gemm_explain, mp_conv2d_explain, mp_attention_explain and
// MP_LOG_PLANS.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/cache.h"
#include "base/lifetime.h"
#include "capi/tuned_call.h"
#include "kernels/gemm/plan_text.h"
#include "kernels/rnn/rnn_problem.h"

namespace mp {

// ---------------------------------------------------------------------------- text

std::string text_of(const GemmShape &);
inline std::string text_of(const RaggedShape &shape) {
  return text_of(shape.all);
}
std::string text_of(const ConvShape &);

/// Lines of a text.
class Lines {
 public:
  template <class... Parts>
  void add(const Parts &...parts) {
    text_ += Message(parts...).c_str();
    text_ += '\n';
  }
  const std::string &text() const { return text_; }

 private:
  std::string text_;
};

/// Another kernel for the same problem.
struct PlanCandidate {
  const char *name;
  const char *reason;  ///< NULL = it can run the problem
  double predicted_us;
  size_t workspace_bytes;
};
constexpr size_t kPlanCandidates = 5;

/// Describes a plan and the next candidates.
/// @param problem       text_of its shape
/// @param name          of the kernel
/// @param copied_bytes  copies of operands, at offset 0 of the workspace
std::string plan_text(const Context &, const std::string &problem, const char *name,
                      const GemmPlan &, size_t copied_bytes, const std::vector<PlanCandidate> &);

/// Returns whether the environment variable MP_LOG_PLANS is 1.
bool logs_plans();
/// Logs the line of a plan, the first time in the process.
void log_new_plan(const Message &line);
/// Logs a plan in one line, the first time in the process.
void log_new_plan(const std::string &problem, const char *name, const GemmPlan &);

// ---------------------------------------------------------------------------- cache

template <class Shape>
struct PlanKey {
  uint64_t context;     ///< Context::id: contexts may differ in their limits
  uint64_t generation;  ///< tuning_generation()
  size_t workspace_bytes;
  Shape shape;

  bool operator==(const PlanKey &) const = default;
  uint64_t hash() const {
    Hash hash{context};
    hash.mix({generation, uint64_t{workspace_bytes}});
    hash.mix(shape.hash());
    return hash.sum;
  }
};

inline PlanRequest plan_request(const Context &context, size_t workspace_bytes = SIZE_MAX) {
  return {context.device, gemm_tuning(), workspace_bytes};
}

/// Returns the plan that make(request) returns, from the cache if the thread has used the shape
/// before.
template <class Plan, class Shape, class Make>
Plan cached_plan(const Context &context, const Shape &shape, size_t workspace_bytes,
                 const Make &make) {
  return ThreadLocal<Cache<PlanKey<Shape>, Plan>>::get().find(
      {context.id, tuning_generation(), workspace_bytes, shape},
      [&] { return make(plan_request(context, workspace_bytes)); });
}

/// The plan of a descriptor, checked.
class RequestedPlan {
 public:
  /// No plan: the library chooses.
  RequestedPlan() : is_set_(false) {}
  RequestedPlan(const mp_plan_t *user);  // NOLINT: implicit, like the pointer

  bool is_set() const { return is_set_; }
  /// Returns whether the plan determines all bits, not only the kernel.
  bool is_complete() const { return is_set_ && plan_.split_k != 0; }
  const mp_plan_t &get() const { return plan_; }
  /// Returns NULL for the fastest kernel.
  const char *kernel() const { return is_set_ ? plan_.kernel : nullptr; }
  /// Returns the plan without its other fields, for calls whose bits depend only on the kernel.
  RequestedPlan kernel_only() const;

  /// Returns the workspace to plan for: bits of dbias depend on it.
  size_t workspace_limit(size_t workspace_bytes) const {
    return is_complete() ? plan_.workspace_bytes : workspace_bytes;
  }
  /// Checks the kernel of a call that launches nothing.
  void require_known(std::span<const char *const> names) const;
  /// Completes a plan of this kernel, or fails: plan_named_gemm or plan_named_conv did.
  /// @param why              reason of the failure
  /// @param workspace_bytes  of the caller
  void finish(bool is_planned, const char *why, size_t workspace_bytes, GemmPlan &plan) const;

 private:
  bool is_set_;
  mp_plan_t plan_;  ///< uninitialized if none is set
};

/// Returns the plan that gives the same bits again.
mp_plan_t stable_plan(const char *name, const GemmPlan &);

/// Returns the plan of a call that requests none.  Those of mp_gemm_ragged are not measured.
inline GemmPlan choose_plan(const Context &context, const GemmShape &shape,
                            const PlanRequest &request) {
  return plan_gemm(shape, request, TunedCall(context, shape, request.workspace_bytes).kernel());
}
inline GemmPlan choose_plan(const Context &, const RaggedShape &shape, const PlanRequest &request) {
  return plan_gemm(shape, request);
}

/// Returns the plan of mp_gemm, mp_gemm_batched (GemmShape) or mp_gemm_ragged (RaggedShape).
/// @param workspace_bytes  limit
template <class Shape>
GemmPlan find_plan(const Context &context, const Shape &shape, const RequestedPlan &requested,
                   size_t workspace_bytes) {
  const size_t limit = requested.workspace_limit(workspace_bytes);
  if (!requested.is_set())
    return cached_plan<GemmPlan>(context, shape, limit, [&](const PlanRequest &request) {
      const GemmPlan plan = choose_plan(context, shape, request);
      if (logs_plans()) log_new_plan(text_of(shape), plan.name, plan);
      return plan;
    });
  GemmPlan plan;
  const char *why;
  const bool is_planned =
      plan_named_gemm(shape, plan_request(context, limit), requested.kernel(), &plan, &why);
  requested.finish(is_planned, why, workspace_bytes, plan);
  return plan;
}

inline int64_t k_of(const GemmShape &shape) {
  return shape.k;
}
inline int64_t k_of(const RaggedShape &shape) {
  return shape.all.k;
}

/// Returns the plan of a call, like find_plan.  A call with k = 0 multiplies nothing: the library
/// chooses the kernel, and a complete plan allows no workspace, so that bits of dbias do not depend
/// on it.
template <class Shape>
GemmPlan find_call_plan(const Context &context, const Shape &shape, const RequestedPlan &requested,
                        size_t workspace_bytes) {
  if (k_of(shape) != 0) return find_plan(context, shape, requested, workspace_bytes);
  requested.require_known(gemm_names());
  return find_plan(context, shape, {}, requested.is_complete() ? 0 : workspace_bytes);
}

// ---------------------------------------------------------------------------- recurrent layers

/// Returns a plan that depends only on the descriptor, so that sizes do not depend on data.
RnnPlan plan_rnn(const Context &context, const RnnShape &s, const RequestedPlan &requested,
                 RnnPass pass);
/// Returns a workspace size that is sufficient for each call.
size_t most_workspace(const Context &context, const RnnShape &s, const RequestedPlan &requested);
/// Returns the plan that gives the same bits again.
mp_plan_t stable_rnn_plan(const Context &context, const RnnShape &s,
                          const RequestedPlan &requested);

}  // namespace mp
