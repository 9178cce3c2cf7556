// See explain.h.
#include "capi/explain.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <set>

#include "base/environment.h"
#include "base/lifetime.h"
#include "capi/check.h"
#include "capi/plan_cache.h"
#include "kernels/gemm/plan_text.h"

namespace mp {

namespace {

const char *source_name(EpilogueSource source) {
  switch (source) {
    case EpilogueSource::none:
      return "none";
    case EpilogueSource::c:
      return "C";
    case EpilogueSource::aux_read:
      return "aux, read";
    case EpilogueSource::aux_written:
      return "aux, written";
    case EpilogueSource::several:
      return "several matrices";
  }
  return "?";
}

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
  const size_t table = w.slices > w.table && w.table > 0 ? w.slices - w.table : 0;
  const size_t sums = plan.slices() > 1 ? w.bytes - std::min(w.bytes, w.slices) : 0;
  if (copied_bytes > 0) lines.add("  copies      ", copied_bytes, " at 0");
  if (table > 0) lines.add("  table       ", table, " at ", w.table);
  if (sums > 0) lines.add("  split-k     ", sums, " at ", w.slices);
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

std::string text_of(const GemmShape &s) {
  const auto letter = [](mp_op_t op) { return op == MP_OP_N ? "N" : "T"; };
  return Message("m = ", s.out.m, ", n = ", s.out.n, ", k = ", s.k,
                 ", batch_count = ", s.out.batch_count, ", op = ", letter(s.op_a), letter(s.op_b),
                 ", ", mp_dtype_name(s.dtype_ab), " to ", mp_dtype_name(s.out.dtype))
      .c_str();
}

std::string text_of(const ConvShape &s) {
  return Message("n = ", s.n, ", h = ", s.h, ", w = ", s.w, ", c = ", s.c, ", k = ", s.k,
                 ", r = ", s.r, ", s = ", s.s, ", stride = ", s.stride_h, "x", s.stride_w,
                 ", groups = ", s.groups)
      .c_str();
}

std::string plan_text(const Context &context, const std::string &problem, const char *name,
                      const GemmPlan &plan, size_t copied_bytes,
                      const std::vector<PlanCandidate> &candidates) {
  Lines lines;
  lines.add("problem       ", problem);
  lines.add("kernel        ", name);
  lines.add("split_k       ", plan.split_k);
  lines.add("cluster       ", cluster_text(plan));
  lines.add("store path    ", store_path_name(plan));
  lines.add("source        ", source_name(plan.source));
  lines.add("fallback      ", name_of(plan.fallback));
  add_workspace(lines, plan, copied_bytes);
  add_cost(lines, plan, context);
  add_candidates(lines, candidates);
  return lines.text();
}

bool logs_plans() {
  return lazy_init([] {
    static constinit EnvironmentVariable variable("MP_LOG_PLANS", "must be 0 or 1");
    return variable.integer(0, 1).value_or(0) == 1;
  });
}

void log_new_plan(const Message &line) {
  if (is_new_line(line.c_str())) write_requested_log(line);
}

void log_new_plan(const std::string &problem, const char *name, const GemmPlan &plan) {
  log_new_plan(Message("plan: ", name, " for ", problem, ", split_k = ", plan.split_k,
                       ", store path = ", store_path_name(plan), ", workspace_bytes = ",
                       workspace_bytes_of(plan), ", predicted_us = ", shown(plan.predicted_us)));
}

}  // namespace mp
