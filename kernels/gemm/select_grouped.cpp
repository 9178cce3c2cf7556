// Selection of a wgmma kernel that runs a group in one launch.  Clusters and split-k are not
// considered, because a group has enough tiles.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/gemm/predict.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/select_reasons.h"
#include "kernels/gemm/tuning.h"
#include "kernels/gemm/workspace.h"

namespace mp {

namespace {

bool is_aligned_16(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

bool all_fit(const GemmGroup &group) {
  return std::all_of(group.items, group.items + group.count, [&](const GemmGroupItem &item) {
    const GemmProblem p = item_problem(group, item);
    return why_no_tma(p, is_aligned_16(item.a) && is_aligned_16(item.b) && has_vector_rows(p)) ==
           nullptr;
  });
}

bool can_run(const GemmKernel &kernel, const Device &device) {
  return kernel.family == GemmFamily::wgmma && why_no_wgmma(kernel, device) == nullptr;
}

size_t workspace_of(const GemmGroup &group) {
  return wgmma_workspace(group.count).bytes;
}

/// Returns the predicted time.  The tiles of all entries are distributed over the SMs; the last
/// tiles add half of the longest one on average.
double predict_us(const GemmKernel &kernel, const GemmGroup &group, const Device &device,
                  const ClassTuning &tuning) {
  const KernelTuning &cost = tuning.of(kernel);
  const bool ping_pong = kernel.ping_pong && device.target != MP_TARGET_HOST;
  const StorePath path = wgmma_store_path(group);
  double sum_us = 0, longest_us = 0;
  for (const GemmGroupItem *item = group.items; item != group.items + group.count; item++) {
    const TileCounts counts = tile_counts(kernel, 1, item->m, item->n);
    const double tiles = static_cast<double>(counts.m) * static_cast<double>(counts.n);
    const double main_us = tile_us(cost, static_cast<double>(item->k) / kElemsPerK);
    const double out_us =
        epilogue_us(epilogue_cost(kernel, item_problem(group, *item).out, path), tuning);
    const SmTime time = sm_time(ping_pong, tiles, tiles, main_us, out_us);
    sum_us += time.mains * main_us + time.epilogues * out_us;
    longest_us = std::max(longest_us, main_us + out_us);
  }
  const double tables = std::ceil(static_cast<double>(group.count) / kWgmmaProductsPerLaunch);
  return (tables + 1) * tuning.launch_us + cost.start_us +
         std::max(sum_us / device.num_sms, longest_us) + longest_us / 2;
}

}  // namespace

bool choose_gemm_grouped(const GemmGroup &group, const Device &device, const GemmTuning &tuning,
                         size_t workspace_bytes, const char *kernel_name, GemmPlan *choice) {
  if (!all_fit(group)) return false;
  const ClassTuning &of_class = tuning.of(class_of(device));
  bool found = false;
  for (const GemmKernel &kernel : gemm_kernels()) {
    if (!can_run(kernel, device)) continue;
    if (kernel_name != nullptr && std::strcmp(kernel.name, kernel_name) != 0) continue;
    const size_t bytes = workspace_of(group);
    if (bytes > workspace_bytes) continue;
    const double us = predict_us(kernel, group, device, of_class);
    if (found && us >= choice->predicted_us) continue;
    *choice = {&kernel, 1, 1, bytes, us, kernel.name};
    found = true;
  }
  return found;
}

std::string grouped_slow_path_reason(const GemmGroup &group, const Device &device,
                                     size_t workspace_bytes) {
  for (const GemmKernel &kernel : gemm_kernels()) {
    if (!can_run(kernel, device) || !all_fit(group)) continue;
    const size_t bytes = workspace_of(group);
    if (workspace_bytes < bytes)
      return "workspace_bytes = " + std::to_string(workspace_bytes) +
             ", but a single launch requires " + std::to_string(bytes);
  }
  return "";
}

}  // namespace mp
