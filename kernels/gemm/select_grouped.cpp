// Selection of a Hopper kernel that runs a group of products in one launch, without clusters and
// splits: a group has enough tiles.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/gemm/cost.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/select_reasons.h"
#include "kernels/gemm/tuning.h"
#include "kernels/gemm/wgmma_store.h"
#include "kernels/gemm/workspace.h"

namespace mp {

namespace {

bool all_fit(const GemmGroup &group) {
  return std::all_of(group.items, group.items + group.count, [&](const GemmGroupItem &item) {
    const GemmShape shape = shape_of(item_problem(group, item));
    return why_no_tma(shape, is_aligned(shape) && has_vector_rows(shape)) == nullptr;
  });
}

bool can_run(const GemmKernel &kernel, const Device &device) {
  return kernel.family == GemmFamily::wgmma && why_no_wgmma(kernel, device) == nullptr;
}

GemmWorkspace workspace_of(const GemmGroup &group) {
  return {.table = 0, .slices = 0, .bytes = wgmma_table_bytes(group.count)};
}

/// Distributes the tiles of all products to the SMs; the longest tile ends half its time later on
/// average.
double predict_us(const GemmKernel &kernel, const GemmGroup &group, const Device &device,
                  const ClassTuning &tuning, StorePath path) {
  const KernelTuning &cost = tuning.of(kernel);
  const bool ping_pong = kernel.ping_pong && device.target != MP_TARGET_HOST;
  double sum_us = 0, longest_us = 0;
  for (const GemmGroupItem *item = group.items; item != group.items + group.count; item++) {
    const TileCounts counts = tile_counts(kernel, 1, item->m, item->n);
    const double tiles = static_cast<double>(counts.m) * static_cast<double>(counts.n);
    const double main_us = tile_us(cost, static_cast<double>(item->k) / kElemsPerK);
    const double out_us =
        epilogue_us(epilogue_cost(kernel, shape_of(item_problem(group, *item).out), path), tuning);
    const SmTime time = sm_time(ping_pong, tiles, tiles, main_us, out_us);
    sum_us += time.mains * main_us + time.epilogues * out_us;
    longest_us = std::max(longest_us, main_us + out_us);
  }
  const double tables = std::ceil(static_cast<double>(group.count) / kWgmmaProductsPerLaunch);
  return (tables + 1) * tuning.launch_us + cost.start_us +
         std::max(sum_us / device.num_sms, longest_us) + longest_us / 2;
}

}  // namespace

bool plan_gemm_grouped(const GemmGroup &group, const PlanRequest &request, const char *kernel_name,
                       GemmPlan *plan) {
  const GemmWorkspace workspace = workspace_of(group);
  if (!all_fit(group) || workspace.bytes > request.workspace_bytes) return false;
  const ClassTuning &of_class = request.tuning.of(class_of(request.device));
  const StorePath store = wgmma_store_path(group);
  bool found = false;
  for (const GemmKernel &kernel : gemm_kernels()) {
    if (!can_run(kernel, request.device)) continue;
    if (kernel_name != nullptr && std::strcmp(kernel.name, kernel_name) != 0) continue;
    const double us = predict_us(kernel, group, request.device, of_class, store);
    if (found && us >= plan->predicted_us) continue;
    *plan = {.kernel = &kernel,
             .split_k = 1,
             .cluster = 1,
             .name = kernel.name,
             .store = store,
             .source = EpilogueSource::none,
             .copies = {},
             .workspace = workspace,
             .can_fuse_dbias = false,
             .dbias = std::nullopt,
             .fallback = nullptr,
             .predicted_us = us,
             .cost = {}};
    found = true;
  }
  return found;
}

std::string grouped_slow_path_reason(const GemmGroup &group, const Device &device,
                                     size_t workspace_bytes) {
  for (const GemmKernel &kernel : gemm_kernels()) {
    if (!can_run(kernel, device) || !all_fit(group)) continue;
    const size_t bytes = workspace_of(group).bytes;
    if (workspace_bytes < bytes)
      return "workspace_bytes = " + std::to_string(workspace_bytes) +
             ", but a single launch requires " + std::to_string(bytes);
  }
  return "";
}

}  // namespace mp
