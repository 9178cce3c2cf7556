// Plans as text, and mp_plan_t: plans that users keep.
#include "capi/plan_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <string_view>

#include "base/environment.h"
#include "base/lifetime.h"
#include "capi/defaults.h"
#include "kernels/gemm/plan_text.h"

using namespace mp;

namespace {

/// Names of EpilogueSource.
constexpr const char *kSources[] = {"none", "C", "aux, read", "aux, written", "several matrices"};

/// Rounds for display.
double shown(double us) {
  return std::round(us * 100) / 100;
}

std::mutex lines_mutex;
const ForkGuard<lines_mutex> lines_of_a_child;

/// Returns true once per process for each line, and for at most kMaxLines lines.
bool is_new_line(const char *line) {
  constexpr size_t kMaxLines = 4096;
  const size_t hash = std::hash<std::string_view>()(line);
  std::set<size_t> &known = lazy_init([] { return std::set<size_t>(); });
  const std::lock_guard lock(lines_mutex);
  return known.size() < kMaxLines && known.insert(hash).second;
}

void add_workspace(Lines &lines, const GemmPlan &plan, size_t copied_bytes) {
  lines.add("workspace     ", workspace_bytes_of(plan), " bytes");
  const GemmWorkspace &w = plan.workspace;
  const size_t table = w.partial_sums > w.table && w.table > 0 ? w.partial_sums - w.table : 0;
  const size_t sums = plan.num_partials() > 1 ? w.bytes - std::min(w.bytes, w.partial_sums) : 0;
  if (copied_bytes > 0) lines.add("  copies      ", copied_bytes, " at 0");
  if (table > 0) lines.add("  table       ", table, " at ", w.table);
  if (sums > 0) lines.add("  split-k     ", sums, " at ", w.partial_sums);
  if (!plan.dbias) return;
  const DbiasPlan &d = *plan.dbias;
  lines.add("  dbias       ", d.partition.chunks, " chunks at ", d.chunks_at,
            d.in_epilogue ? ", sums of 16 rows from the kernel: " : ", by a pass over D",
            d.in_epilogue ? std::to_string(d.partial_bytes) + " at " + std::to_string(d.partials_at)
                          : std::string());
}

void add_cost(Lines &lines, const GemmPlan &plan, const Context &context) {
  const bool is_estimate = is_estimated(gemm_tuning(), context.device);
  lines.add("predicted     ", shown(plan.predicted_us), " us",
            is_estimate ? ", by estimated constants" : "");
  for (const CostPart &part : cost_parts(plan, context.device, gemm_tuning()))
    if (part.us > 0) lines.add("  ", part.name, "  ", shown(part.us), " us");
}

void add_candidates(Lines &lines, const std::vector<PlanCandidate> &candidates) {
  lines.add("next candidates");
  for (const PlanCandidate &x : candidates)
    if (x.reason != nullptr)
      lines.add("  ", x.name, "  ", x.reason);
    else
      lines.add("  ", x.name, "  ", shown(x.predicted_us), " us, workspace ", x.workspace_bytes);
}

}  // namespace

std::string mp::text_of(const GemmShape &s) {
  const auto letter = [](mp_op_t op) { return op == MP_OP_N ? "N" : "T"; };
  return Message("m = ", s.out.m, ", n = ", s.out.n, ", k = ", s.k,
                 ", batch_count = ", s.out.batch_count, ", op = ", letter(s.op_a), letter(s.op_b),
                 ", ", mp_dtype_name(s.dtype_ab), " to ", mp_dtype_name(s.out.dtype))
      .c_str();
}

std::string mp::text_of(const ConvShape &s) {
  return Message("n = ", s.n, ", h = ", s.h, ", w = ", s.w, ", c = ", s.c, ", k = ", s.k,
                 ", r = ", s.r, ", s = ", s.s, ", stride = ", s.stride_h, "x", s.stride_w,
                 ", groups = ", s.groups)
      .c_str();
}

std::string mp::plan_text(const Context &context, const std::string &problem, const char *name,
                          const GemmPlan &plan, size_t copied_bytes,
                          const std::vector<PlanCandidate> &candidates) {
  Lines lines;
  lines.add("problem       ", problem);
  lines.add("kernel        ", name);
  lines.add("split_k       ", plan.split_k);
  lines.add("cluster       ", cluster_text(plan));
  lines.add("store path    ", store_path_name(plan));
  lines.add("source        ", kSources[static_cast<int>(plan.source)]);
  lines.add("fallback      ", name_of(plan.fallback));
  add_workspace(lines, plan, copied_bytes);
  add_cost(lines, plan, context);
  add_candidates(lines, candidates);
  return lines.text();
}

bool mp::logs_plans() {
  return lazy_init([] {
    static constinit EnvironmentVariable variable("MP_LOG_PLANS", "must be 0 or 1");
    return variable.integer(0, 1).value_or(0) == 1;
  });
}

void mp::log_new_plan(const Message &line) {
  if (is_new_line(line.c_str())) write_requested_log(line);
}

void mp::log_new_plan(const std::string &problem, const char *name, const GemmPlan &plan) {
  log_new_plan(Message("plan: ", name, " for ", problem, ", split_k = ", plan.split_k,
                       ", store path = ", store_path_name(plan), ", workspace_bytes = ",
                       workspace_bytes_of(plan), ", predicted_us = ", shown(plan.predicted_us)));
}

// ---------------------------------------------------------------------------- plans of users

RequestedPlan::RequestedPlan(const mp_plan_t *user) : is_set_(user != nullptr) {
  constexpr int32_t kMaxSms = 1 << 16;  // of one device; bounds products of num_sms in selection
  if (!is_set_) return;
  plan_ = read_struct(user, "plan");
  MP_REQUIRE(std::memchr(plan_.kernel, 0, sizeof plan_.kernel) != nullptr,
             MP_ERROR_INVALID_ARGUMENT, "plan->kernel must be NUL-terminated");
  MP_REQUIRE(plan_.kernel[0] != 0, MP_ERROR_INVALID_ARGUMENT,
             "plan->kernel = \"\" must not be empty");
  require_not_negative(plan_.split_k, "plan->split_k");
  require_not_negative(plan_.num_sms, "plan->num_sms");
  require_at_most(plan_.num_sms, "plan->num_sms", kMaxSms);
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

mp_plan_t mp::stable_plan(const char *name, const GemmPlan &plan) {
  mp_plan_t stable{};
  std::string_view(name).copy(stable.kernel, sizeof stable.kernel - 1);
  stable.split_k = plan.split_k;
  stable.workspace_bytes = workspace_bytes_of(plan);
  stable.predicted_us = plan.predicted_us;
  stable.num_sms = plan.num_sms;
  return stable;
}

mp_status_t mp_plan_init(mp_plan_t *plan, size_t struct_size, const char *kernel) {
  return init(__func__, plan, "plan", struct_size, [&] {
    auto p = zero_struct<mp_plan_t>();
    if (kernel != nullptr) std::string_view(kernel).copy(p.kernel, sizeof p.kernel - 1);
    return p;
  });
}
