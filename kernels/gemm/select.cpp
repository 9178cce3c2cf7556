// Selection of GEMM kernels: the kernels that can run a problem, and their ranking.
//
// Pure functions of (problem, device, tuning).  The kernels are in table.cpp, the predicted times
// in predict.h.
#include "kernels/gemm/select.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "base/lazy_init.h"
#include "kernels/gemm/aligned_copies.h"
#include "kernels/gemm/dbias.h"
#include "kernels/gemm/predict.h"
#include "kernels/gemm/select_reasons.h"
#include "kernels/gemm/tiles.h"
#include "kernels/gemm/tuning.h"
#include "kernels/gemm/workspace.h"

namespace mp {

const char *why_no_wgmma(const GemmKernel &kernel, const Device &device) {
  if (device.arch != 90) return "requires sm_90";
  if (!device.has_wgmma) return "requires sm_90a code, which this build or driver lacks";
  if (static_cast<int64_t>(kernel.smem_bytes(true, true)) > device.smem_per_block)
    return "requires more shared memory than the device has";
  return nullptr;
}

const char *why_no_tma(const GemmProblem &p, bool vectorised) {
  // Limits of a tensor map: cuTensorMapEncodeTiled.
  constexpr int64_t kEndOfExtents = int64_t{1} << 31;
  constexpr int64_t kEndOfStrides = int64_t{1} << 39;  // in 16-bit elements; 2^40 bytes
  if (p.dtype_ab == MP_FP32) return "requires FP16 or BF16";
  if (p.k == 0) return "requires k > 0";
  if (!vectorised) return "requires 16-byte aligned rows";
  if ((p.out.m | p.out.n | p.k) >= kEndOfExtents) return "requires dimensions less than 2^31";
  // The end of a slice, which may be past the end of k, is an int32.
  if (p.k > kEndOfExtents / 2) return "requires k of at most 2^30";
  if ((p.a.ld | p.b.ld | p.a.stride | p.b.stride) >= kEndOfStrides)
    return "requires row and batch strides of less than 2^40 bytes";
  return nullptr;
}

namespace {

constexpr int64_t kMinSliceElems = 128;

const char *why_not_wmma(const GemmKernel &kernel, const GemmProblem &p, const Device &device) {
  if (p.dtype_ab == MP_FP32) return "requires FP16 or BF16";
  if (p.dtype_ab == MP_BF16 && device.arch < 80) return "requires sm_80 or newer for BF16";
  if (device.arch < 70) return "requires sm_70 or newer";
  const size_t smem = kernel.smem_bytes(p.op_a == MP_OP_N, p.op_b == MP_OP_T);
  if (static_cast<int64_t>(smem) > device.smem_per_block)
    return "requires more shared memory than the device has";
  return nullptr;
}

/// Input of a selection: one problem on one device, with or without copies of A and B.
struct SelectionInput {
  SelectionInput(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
                 bool aligned, const AlignedCopies &copies = {},
                 const PatchOperands *patches = nullptr)
      : problem(with_copies(problem, copies, nullptr)),
        device(device),
        tuning(tuning.of(class_of(device))),
        vectorised(aligned && has_vector_rows(this->problem)),
        copies(copies),
        patches(patches) {}
  const GemmProblem problem;
  const Device &device;
  const ClassTuning &tuning;
  const bool vectorised;
  const AlignedCopies copies;
  const PatchOperands *const patches;
};

/// Returns the copies of A and B; none for misaligned pointers, for which copies would not help.
AlignedCopies copies_for(const GemmProblem &problem, bool aligned) {
  return aligned ? aligned_copies(problem) : AlignedCopies{};
}

/// Returns NULL if the kernel can run the problem with that cluster, else the reason.
const char *why_not(const GemmKernel &kernel, int cluster, const SelectionInput &q) {
  const char *why = nullptr;
  if (kernel.family == GemmFamily::wgmma) {
    why = why_no_wgmma(kernel, q.device);
    if (why == nullptr) why = why_no_tma(q.problem, q.vectorised);
  }
  if (kernel.family == GemmFamily::wmma) why = why_not_wmma(kernel, q.problem, q.device);
  if (kernel.family == GemmFamily::gemv &&
      std::min(q.problem.out.m, q.problem.out.n) > kGemvMaxVectors)
    why = "requires m or n of at most 16";
  if (why != nullptr || cluster == 1) return why;
  if (q.device.num_sms < cluster) return "requires two SMs for a cluster";
  const TileCounts tiles = tile_counts(kernel, 1, q.problem.out.m, q.problem.out.n);
  if ((kernel.cluster_along_m ? tiles.m : tiles.n) < cluster)
    return "requires two adjacent tiles for a cluster";
  return nullptr;
}

/// Returns the bits of x as a float.  If x >= 0, they are ordered like the values.
uint32_t float_bits(double x) {
  return std::bit_cast<uint32_t>(static_cast<float>(x));
}

/// Kernel and cluster that can run a problem, with any split of k.
class Candidate {
 public:
  Candidate(const GemmKernel &kernel, int cluster, const SelectionInput &q)
      : kernel_(kernel),
        q_(q),
        tiles_(tile_counts(kernel, cluster, q.problem.out.m, q.problem.out.n)),
        counter_(kernel, cluster, q.problem, q.device, q.vectorised, q.copies, q.patches) {}

  /// Returns NULL if k can be split into that many slices, else the reason.
  const char *why_not_split(int split_k) const {
    const double tiles = static_cast<double>(tiles_.m) * static_cast<double>(tiles_.n) *
                         q_.problem.out.batch_count * split_k;
    // Limit of the divisors of a scheduler (tile_scheduler.h).
    if (kernel_.family == GemmFamily::wgmma && tiles >= 0x1p31)
      return "requires fewer than 2^31 tiles and slices";
    if (split_k == 1) return nullptr;
    const int64_t slice = slice_elems(kernel_, q_.problem.k, split_k);
    const bool last_is_empty = slice * (split_k - 1) >= q_.problem.k;
    if (slice < kMinSliceElems || last_is_empty) return "requires a larger k for this split";
    // split_k_sum divides 31-bit numbers.  For a convolution it adds all phases and groups at once.
    const double quads = static_cast<double>(q_.problem.out.m) *
                         static_cast<double>((q_.problem.out.n + 3) / 4) *
                         static_cast<double>(q_.problem.out.batch_count);
    return quads < 0x1p31 ? nullptr : "requires D to have fewer than 2^33 elements with this split";
  }

  /// Returns the order of equally fast plans: by family, then by the elements of all tiles.
  /// Elements outside D cost power if all plans are bound by memory.  The low byte is 0.
  uint32_t tie_break() const {
    const double elems = static_cast<double>(tiles_.m) * kernel_.tile_m *
                         static_cast<double>(tiles_.n) * kernel_.tile_n;
    return static_cast<uint32_t>(kernel_.family) << 30 | float_bits(elems) >> 9 << 8;
  }

  float us(int split_k) const { return static_cast<float>(priced(counter_.load(split_k))); }
  size_t workspace_bytes(int split_k) const {
    return q_.copies.bytes() + bytes_of_products(split_k);
  }

 private:
  size_t bytes_of_products(int split_k) const {
    const Output &out = q_.problem.out;
    const size_t slices = slices_bytes(split_k, out.batch_count, out.m, out.n);
    if (kernel_.family != GemmFamily::wgmma) return slices;
    return wgmma_workspace(out.d.items != nullptr ? out.batch_count : 0, slices).bytes;
  }

  double priced(const GemmLoad &load) const {
    return predicted_us(load, q_.tuning, q_.tuning.of(kernel_));
  }

  const GemmKernel &kernel_;
  const SelectionInput &q_;
  const TileCounts tiles_;
  const GemmCounter counter_;
};

/// Returns the name of the variant, with copies if the input has them; NULL if it has none.
const char *name_of(const GemmVariant &variant, const SelectionInput &q) {
  return q.copies.bytes() > 0 ? variant.copied_name : variant.name;
}

GemmPlan choice_of(const GemmVariant &variant, const Candidate &candidate,
                   const SelectionInput &q) {
  return {.kernel = variant.kernel,
          .split_k = variant.split_k,
          .cluster = variant.cluster,
          .workspace_bytes = candidate.workspace_bytes(variant.split_k),
          .predicted_us = candidate.us(variant.split_k),
          .name = name_of(variant, q),
          .reads_copies = q.copies.bytes() > 0,
          .fuses_dbias = variant.kernel->family == GemmFamily::wgmma && variant.split_k == 1};
}

/// Ranks the plans with these tiles, fastest first; returns how many exist.
int rank(GemmTiles tiles, const SelectionInput &question, GemmPlan *choices, int capacity) {
  std::array<GemmPlan, kMaxGemmPlans> runnable;
  std::array<uint64_t, kMaxGemmPlans> order;
  static_assert(kMaxGemmPlans <= UINT8_MAX + 1);
  uint32_t count = 0;
  std::optional<Candidate> candidate;
  for (const GemmVariant &variant : gemm_variants()) {
    if (variant.split_k == 1) {
      candidate.reset();
      if ((tiles & gemm_tiles({variant.kernel->tile})) != 0 &&
          name_of(variant, question) != nullptr &&
          why_not(*variant.kernel, variant.cluster, question) == nullptr)
        candidate.emplace(*variant.kernel, variant.cluster, question);
    }
    if (!candidate || candidate->why_not_split(variant.split_k) != nullptr) continue;
    runnable[count] = choice_of(variant, *candidate, question);
    // Among equals the earlier row is first: the larger tile and the smaller split.
    order[count] =
        uint64_t{float_bits(runnable[count].predicted_us)} << 32 | candidate->tie_break() | count;
    count++;
  }
  std::sort(order.data(), order.data() + count);
  for (uint32_t i = 0; i < std::min(count, static_cast<uint32_t>(capacity)); i++)
    choices[i] = runnable[order[i] & UINT8_MAX];
  return static_cast<int>(count);
}

/// Finds the plan of the variant with that `its_name`.  Otherwise returns false and the reason,
/// which is NULL if the name is unknown.
bool find(const char *GemmVariant::*its_name, const char *name, const SelectionInput &question,
          GemmPlan *choice, const char **why) {
  *why = nullptr;
  for (const GemmVariant &variant : gemm_variants()) {
    if (variant.*its_name == nullptr || std::strcmp(variant.*its_name, name) != 0) continue;
    *why = why_not(*variant.kernel, variant.cluster, question);
    if (*why != nullptr) return false;
    const Candidate candidate(*variant.kernel, variant.cluster, question);
    *why = candidate.why_not_split(variant.split_k);
    if (*why != nullptr) return false;
    *choice = choice_of(variant, candidate, question);
    return true;
  }
  return false;
}

}  // namespace

int rank_gemm_of(GemmTiles tiles, const GemmProblem &problem, const Device &device,
                 const GemmTuning &tuning, bool aligned, GemmPlan *choices, int capacity,
                 const PatchOperands *patches) {
  return rank(tiles, {problem, device, tuning, aligned, {}, patches}, choices, capacity);
}

int rank_gemm(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
              bool aligned, GemmPlan *choices, int capacity) {
  std::array<GemmPlan, kMaxGemmPlans> all;
  const int in_place =
      rank_gemm_of(kAllGemmTiles, problem, device, tuning, aligned, all.data(), kMaxGemmPlans);
  int count = in_place;
  const AlignedCopies copies = copies_for(problem, aligned);
  if (copies.bytes() > 0) {
    count += rank(kAllGemmTiles, {problem, device, tuning, aligned, copies}, all.data() + in_place,
                  kMaxGemmPlans - in_place);
    std::inplace_merge(
        all.data(), all.data() + in_place, all.data() + count,
        [](const GemmPlan &a, const GemmPlan &b) { return a.predicted_us < b.predicted_us; });
  }
  std::copy_n(all.data(), std::min(count, capacity), choices);
  return count;
}

GemmPlan plan_gemm(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
                   bool aligned, size_t workspace_bytes) {
  std::array<GemmPlan, kMaxGemmPlans> ranked;
  (void)rank_gemm(problem, device, tuning, aligned, ranked.data(), kMaxGemmPlans);
  GemmPlan best = *first_that_fits(ranked.data(), workspace_bytes);
  best.best_workspace_bytes = best_workspace_bytes(problem.out, ranked[0]);
  best.best_us = ranked[0].predicted_us;
  if (!slow_path_reason(problem, device, aligned).empty()) {
    (void)rank_gemm(without_slow_path(problem, device), device, tuning, true, ranked.data(),
                    kMaxGemmPlans);
    best.aligned_us = first_that_fits(ranked.data(), workspace_bytes)->predicted_us;
  }
  GemmProblem mapped = problem;
  mapped.out = aligned_for_tma_store(problem.out);
  if (!device.has_wgmma || wgmma_store_path(problem.out) != StorePath::staged ||
      wgmma_store_path(mapped.out) != StorePath::tma)
    return best;
  (void)rank_gemm(mapped, device, tuning, aligned, ranked.data(), kMaxGemmPlans);
  best.mapped_us = first_that_fits(ranked.data(), workspace_bytes)->predicted_us;
  return best;
}

bool find_gemm_in_place(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
                        bool aligned, const char *name, GemmPlan *choice, const char **why,
                        const PatchOperands *patches) {
  return find(&GemmVariant::name, name, {problem, device, tuning, aligned, {}, patches}, choice,
              why);
}

bool find_gemm(const GemmProblem &problem, const Device &device, const GemmTuning &tuning,
               bool aligned, const char *name, GemmPlan *choice, const char **why) {
  if (find_gemm_in_place(problem, device, tuning, aligned, name, choice, why)) return true;
  const AlignedCopies copies = copies_for(problem, aligned);
  const char *why_no_copies;
  if (!find(&GemmVariant::copied_name, name, {problem, device, tuning, aligned, copies}, choice,
            &why_no_copies)) {
    if (why_no_copies != nullptr) *why = why_no_copies;
    return false;
  }
  if (copies.bytes() > 0) return true;
  *why =
      "requires 16-byte aligned matrices and an ld or stride that is not a multiple of 8, and does "
      "not support arrays of pointers";
  return false;
}

std::span<const char *const> gemm_names() {
  return lazy_init([] {
    std::vector<const char *> all;
    for (const GemmVariant &variant : gemm_variants()) {
      all.push_back(variant.name);
      if (variant.copied_name != nullptr && variant.copied_name != variant.name)
        all.push_back(variant.copied_name);
    }
    return all;
  });
}

}  // namespace mp
