// Selection for mp_gemm_ragged.  The device alone reads the group sizes, so selection assumes equal
// shares.  No clusters and no splits: both need groups that end at tile boundaries.
#include <algorithm>
#include <vector>

#include "kernels/gemm/select.h"
#include "kernels/gemm/select_reasons.h"
#include "kernels/gemm/wgmma_store.h"

namespace mp {

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
  if (kernel.family == GemmFamily::gemv) return "does not support mp_gemm_ragged";
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
    return why_not(*v.kernel, v.split_k, v.cluster, entry.reads_copies, shape) == nullptr &&
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
  *why = why_not(*found.kernel, found.split_k, found.cluster, found.copies.bytes() > 0, shape);
  if (*why != nullptr) return false;
  *plan = found;
  return true;
}

}  // namespace mp
