// Selection of a kernel for mp_gemm_ragged.  The sizes of groups are unknown, so the plan is the
// best one for equal sizes.  Clusters and split-k do not support groups that end anywhere.
#include <algorithm>
#include <array>

#include "kernels/gemm/select.h"
#include "kernels/gemm/select_reasons.h"
#include "kernels/gemm/workspace.h"

namespace mp {

namespace {

/// Placeholder for a stride: only its presence and alignment matter.
constexpr int64_t kAnyStride = 8;

/// Returns the problem with groups of equal size.
GemmProblem equal_shares(const RaggedProblem &problem) {
  GemmProblem p = problem.all;
  const int64_t groups = p.out.batch_count;
  const auto share = [&](int64_t elems) { return (elems + groups - 1) / groups; };
  p.a.stride = kAnyStride;
  if (problem.dimension == MP_RAGGED_M) {
    p.out.m = share(p.out.m);
    p.out.c.stride = p.out.m * p.out.c.ld;
    p.out.d.stride = p.out.m * p.out.d.ld;
  } else {
    p.k = share(p.k);
    p.b.stride = kAnyStride;
  }
  return p;
}

/// Returns whether a row of A or B belongs to several groups.
bool groups_share_rows(const RaggedProblem &problem) {
  const GemmProblem &p = problem.all;
  if (problem.dimension == MP_RAGGED_M) return p.op_a == MP_OP_T;
  return p.op_a == MP_OP_N || p.op_b == MP_OP_T;
}

/// Returns NULL if a plan for one group runs all groups, else the reason.
const char *why_not(const GemmPlan &choice, const RaggedProblem &problem) {
  if (choice.kernel->family == GemmFamily::gemv) return "does not support mp_gemm_ragged";
  if (choice.reads_copies) return "copies A and B, which mp_gemm_ragged does not support";
  if (choice.split_k > 1) return "uses split-k, which mp_gemm_ragged does not support";
  if (choice.cluster > 1) return "uses clusters, which mp_gemm_ragged does not support";
  if (choice.kernel->family != GemmFamily::wgmma) return nullptr;
  if (groups_share_rows(problem))
    return "requires groups in separate rows: op_a = MP_OP_N with MP_RAGGED_M; op_a = MP_OP_T and "
           "op_b = MP_OP_N with MP_RAGGED_K";
  return why_no_tma(problem.all, true);
}

GemmPlan for_groups(const GemmPlan &of_shares, const RaggedProblem &problem) {
  GemmPlan choice = of_shares;
  const GemmKernel &kernel = *choice.kernel;
  const int64_t groups = kernel.family == GemmFamily::wgmma ? problem.all.out.batch_count : 0;
  choice.workspace_bytes = wgmma_workspace(groups).bytes;
  return choice;
}

GemmPlan first_for_groups(const RaggedProblem &problem, const Device &device,
                          const GemmTuning &tuning, bool aligned, size_t workspace_bytes) {
  std::array<GemmPlan, kMaxGemmPlans> ranked;
  const int count = rank_gemm_of(kAllGemmTiles, equal_shares(problem), device, tuning, aligned,
                                 ranked.data(), kMaxGemmPlans);
  const auto best = std::find_if(ranked.begin(), ranked.begin() + count, [&](const GemmPlan &c) {
    return why_not(c, problem) == nullptr &&
           for_groups(c, problem).workspace_bytes <= workspace_bytes;
  });
  return for_groups(*best, problem);
}

}  // namespace

GemmPlan plan_gemm_ragged(const RaggedProblem &problem, const Device &device,
                          const GemmTuning &tuning, bool aligned, size_t workspace_bytes) {
  GemmPlan best = first_for_groups(problem, device, tuning, aligned, workspace_bytes);
  const GemmPlan wanted = first_for_groups(problem, device, tuning, aligned, SIZE_MAX);
  best.best_workspace_bytes = wanted.workspace_bytes;
  best.best_us = wanted.predicted_us;
  if (slow_path_reason(problem.all, device, aligned).empty()) return best;
  RaggedProblem better = problem;
  better.all = without_slow_path(problem.all, device);
  best.aligned_us = first_for_groups(better, device, tuning, true, workspace_bytes).predicted_us;
  return best;
}

bool find_gemm_ragged(const RaggedProblem &problem, const Device &device, const GemmTuning &tuning,
                      bool aligned, const char *name, GemmPlan *choice, const char **why) {
  GemmPlan found;
  if (!find_gemm(equal_shares(problem), device, tuning, aligned, name, &found, why)) return false;
  *why = why_not(found, problem);
  if (*why != nullptr) return false;
  *choice = for_groups(found, problem);
  return true;
}

}  // namespace mp
