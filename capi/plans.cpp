// Plans as text; mp_plan_t, a plan that users keep; plans of recurrent layers.
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
  MP_COPY_FIELDS(stable, plan, split_k, predicted_us, num_sms);
  stable.workspace_bytes = workspace_bytes_of(plan);
  return stable;
}

mp_status_t mp_plan_init(mp_plan_t *plan, size_t struct_size, const char *kernel) {
  return init(__func__, plan, "plan", struct_size, [&] {
    auto p = zero_struct<mp_plan_t>();
    if (kernel != nullptr) std::string_view(kernel).copy(p.kernel, sizeof p.kernel - 1);
    return p;
  });
}

// ---------------------------------------------------------------------------- recurrent layers

namespace {

constexpr RnnPass kPasses[] = {RnnPass::training, RnnPass::inference, RnnPass::backward_data,
                               RnnPass::backward_weights};

/// Returns the kernel that the plan names, or the best one.
RnnKernel choose_kernel(const Context &context, const RnnShape &s, const RequestedPlan &requested) {
  if (!requested.is_set()) return rank_rnn_kernels(s, context.device)[0];
  const std::string_view name = requested.kernel();
  const auto *const found = std::ranges::find(kRnnKernelNames, name);
  MP_REQUIRE(found != std::end(kRnnKernelNames), MP_ERROR_NOT_FOUND, "plan->kernel = ", name,
             " is unknown");
  const auto kernel = static_cast<RnnKernel>(found - kRnnKernelNames);
  const char *const why = why_not(kernel, s, context.device);
  MP_REQUIRE(why == nullptr, MP_ERROR_UNSUPPORTED, "plan->kernel = ", name, " ", why);
  return kernel;
}

constexpr int kPlannedLayers = 2;  ///< the first, and all others
static_assert(sizeof(mp_plan_t::products) == sizeof(uint32_t) * kPlannedLayers * kRnnProducts);

int index_of(int64_t layer, RnnProduct product) {
  return static_cast<int>(layer) * kRnnProducts + static_cast<int>(product);
}

/// Returns the code of a kernel in mp_plan_t.products: FNV-1a of its name, which does not change
/// between versions.
uint32_t code_of(std::string_view kernel) {
  uint32_t code = 2166136261u;
  for (const char c : kernel) code = (code ^ static_cast<unsigned char>(c)) * 16777619u;
  return code;
}

/// Returns the plan of a product that the user's plan contains.
GemmPlan planned_product(const Context &context, const GemmShape &shape, const mp_plan_t &plan,
                         int index) {
  const uint32_t code = plan.products[index];
  MP_REQUIRE(code != 0, MP_ERROR_UNSUPPORTED, "plan->products[", index,
             "] = 0: the plan was made for a network with other layers");
  const auto names = gemm_names();
  const auto name = std::ranges::find(names, code, code_of);
  MP_REQUIRE(name != names.end(), MP_ERROR_NOT_FOUND, "plan->products[", index, "] = ", code,
             " is unknown");
  GemmPlan gemm;
  const char *why;
  MP_REQUIRE(plan_named_gemm(shape, plan_request(context), *name, &gemm, &why),
             MP_ERROR_UNSUPPORTED, "plan->products[", index, "] = ", *name, " ", why);
  if (plan.num_sms != 0) gemm.num_sms = plan.num_sms;
  return gemm;
}

}  // namespace

RnnPlan mp::plan_rnn(const Context &context, const RnnShape &s, const RequestedPlan &requested,
                     RnnPass pass) {
  RnnPlan plan{.kernel = choose_kernel(context, s, requested),
               .plans = {},
               .gemm_bytes = 0,
               .tuning = requested.is_complete() ? &builtin_gemm_tuning() : &gemm_tuning(),
               .device = context.device};
  if (requested.is_complete() && requested.get().num_sms != 0)
    plan.device.num_sms = requested.get().num_sms;
  if (s.is_empty()) return plan;
  for (int64_t layer = 0; layer < std::min(s.layers, kPlannedLayers); layer++)
    for (const RnnProduct product : rnn_products(s, pass, layer)) {
      const GemmShape shape = shape_of(rnn_product(s, product, layer));
      GemmPlan &gemm = plan.plans[layer][static_cast<int>(product)];
      if (requested.is_complete()) {
        gemm = planned_product(context, shape, requested.get(), index_of(layer, product));
      } else if (has_any_rows(s, product)) {
        gemm = plan_for_any_rows(shape, {context.device, *plan.tuning});
        if (logs_plans()) log_new_plan(text_of(shape), gemm.name, gemm);
      } else {
        gemm = find_plan(context, shape, {}, SIZE_MAX);
      }
      plan.gemm_bytes = std::max(plan.gemm_bytes, gemm.workspace.bytes);
    }
  return plan;
}

size_t mp::most_workspace(const Context &context, const RnnShape &s,
                          const RequestedPlan &requested) {
  size_t most = 0;
  for (const RnnPass pass : kPasses)
    most = std::max(most,
                    rnn_workspace(s, pass, plan_rnn(context, s, requested, pass).gemm_bytes).bytes);
  return most;
}

mp_plan_t mp::stable_rnn_plan(const Context &context, const RnnShape &s,
                              const RequestedPlan &requested) {
  mp_plan_t stable{};
  stable.split_k = 1;
  stable.workspace_bytes = most_workspace(context, s, requested);
  for (const RnnPass pass : kPasses) {
    const RnnPlan plan = plan_rnn(context, s, requested, pass);
    const std::string_view kernel = kRnnKernelNames[static_cast<int>(plan.kernel)];
    kernel.copy(stable.kernel, sizeof stable.kernel - 1);
    stable.num_sms = plan.device.num_sms;
    for (int64_t layer = 0; layer < std::min(s.layers, kPlannedLayers); layer++)
      for (const RnnProduct product : rnn_products(s, pass, layer))
        if (const GemmPlan &gemm = plan.plans[layer][static_cast<int>(product)];
            gemm.name != nullptr)
          stable.products[index_of(layer, product)] = code_of(gemm.name);
  }
  return stable;
}
