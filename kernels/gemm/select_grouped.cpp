// Selection for mp_gemm_grouped and mp_gemm_ragged.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/gemm/cost.h"
#include "kernels/gemm/plan_text.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tuning.h"

namespace mp {

// ---------------------------------------------------------------------------- mp_gemm_grouped

// A Hopper kernel that runs a group of products in one launch, without clusters and splits: a group
// has enough tiles.

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
  const size_t table_bytes = wgmma_table_bytes(group.count);
  if (!all_fit(group) || table_bytes > request.workspace_bytes) return false;
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
             .name = kernel.name,
             .store = store,
             .workspace = {.table = 0, .partial_sums = 0, .bytes = table_bytes},
             .predicted_us = us};
    found = true;
  }
  return found;
}

std::string grouped_slow_path_reason(const GemmGroup &group, const Device &device,
                                     size_t workspace_bytes) {
  const size_t bytes = wgmma_table_bytes(group.count);
  const auto runs = [&](const GemmKernel &kernel) { return can_run(kernel, device); };
  if (workspace_bytes >= bytes || !std::ranges::any_of(gemm_kernels(), runs) || !all_fit(group))
    return "";
  return "workspace_bytes = " + std::to_string(workspace_bytes) +
         ", but a single launch requires " + std::to_string(bytes);
}

// ---------------------------------------------------------------------------- mp_gemm_ragged

// The device alone reads the group sizes, so selection assumes equal
// shares.  No clusters and no splits: both need groups that end at tile boundaries.

namespace {

/// Any nonzero stride with the alignment of rows.
constexpr int64_t kAnyStride = 8;

/// Groups of equal size.
GemmShape equal_shares(const RaggedShape &shape) {
  GemmShape s = shape.all;
  const int64_t groups = s.out.batch_count;
  const auto share = [&](int64_t elems) { return (elems + groups - 1) / groups; };
  s.a.stride = kAnyStride;
  if (shape.dimension == MP_RAGGED_M) {
    s.out.m = share(s.out.m);
    s.out.c.stride = s.out.m * s.out.c.ld;
    s.out.d.stride = s.out.m * s.out.d.ld;
  } else {
    s.k = share(s.k);
    s.b.stride = kAnyStride;
  }
  return s;
}

/// A row of A or B contains elements of several groups.
bool groups_share_rows(const RaggedShape &shape) {
  const GemmShape &s = shape.all;
  if (shape.dimension == MP_RAGGED_M) return s.op_a == MP_OP_T;
  return s.op_a == MP_OP_N || s.op_b == MP_OP_T;
}

/// NULL if a variant that runs one share runs all of them, else the reason.
const char *why_not(const GemmKernel &kernel, int split_k, int cluster, bool reads_copies,
                    const RaggedShape &shape) {
  if (kernel.family == GemmFamily::gemv || kernel.family == GemmFamily::thin)
    return "does not support mp_gemm_ragged";
  if (reads_copies) return "copies A and B, which mp_gemm_ragged does not support";
  if (split_k > 1) return "uses split-k, which mp_gemm_ragged does not support";
  if (cluster > 1) return "uses clusters, which mp_gemm_ragged does not support";
  if (kernel.family != GemmFamily::wgmma) return nullptr;
  if (groups_share_rows(shape))
    return "requires groups in separate rows: op_a = MP_OP_N with MP_RAGGED_M; op_a = MP_OP_T and "
           "op_b = MP_OP_N with MP_RAGGED_K";
  return why_no_tma(shape.all, true);
}

GemmPlan fastest(const RaggedShape &shape, const PlanRequest &request) {
  const GemmShape share = equal_shares(shape);
  const std::vector<RankedGemm> ranked = rank_in_place(kAllGemmTiles, share, request);
  const RankedGemm &best = *std::ranges::find_if(ranked, [&](const RankedGemm &entry) {
    const GemmVariant &v = *entry.variant;
    return why_not(*v.kernel, v.split_k, v.multicast, entry.reads_copies, shape) == nullptr &&
           entry.workspace_bytes <= request.workspace_bytes;
  });
  return plan_variant(*best.variant, share, request);
}

}  // namespace

GemmPlan plan_gemm(const RaggedShape &shape, const PlanRequest &request) {
  GemmPlan best = fastest(shape, request);
  const GemmPlan wanted = fastest(shape, {request.device, request.tuning});
  best.best_workspace_bytes = wanted.workspace.bytes;
  best.best_us = wanted.predicted_us;
  if (slow_path_reason(shape.all, request.device).empty()) return best;
  RaggedShape better = shape;
  better.all = without_slow_path(shape.all, request.device);
  best.aligned_us = fastest(better, request).predicted_us;
  return best;
}

bool plan_named_gemm(const RaggedShape &shape, const PlanRequest &request, const char *name,
                     GemmPlan *plan, const char **why) {
  GemmPlan found;
  if (!plan_named_gemm(equal_shares(shape), request, name, &found, why)) return false;
  *why = why_not(*found.kernel, found.split_k, found.multicast, found.copies.bytes() > 0, shape);
  if (*why != nullptr) return false;
  *plan = found;
  return true;
}

}  // namespace mp
