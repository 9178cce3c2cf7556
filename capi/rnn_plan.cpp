// Plans of recurrent layers: the implementation of the time steps and the kernels of the products.
#include "capi/plan_cache.h"

#include <algorithm>
#include <string_view>

namespace mp {

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

/// Code of a kernel in mp_plan_t.products: FNV-1a of its name, which does not change between
/// versions.
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

RnnPlan plan_rnn(const Context &context, const RnnShape &s, const RequestedPlan &requested,
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

size_t most_workspace(const Context &context, const RnnShape &s, const RequestedPlan &requested) {
  size_t most = 0;
  for (const RnnPass pass : kPasses)
    most = std::max(most,
                    rnn_workspace(s, pass, plan_rnn(context, s, requested, pass).gemm_bytes).bytes);
  return most;
}

mp_plan_t stable_rnn_plan(const Context &context, const RnnShape &s,
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

}  // namespace mp
