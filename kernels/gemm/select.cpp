// Kernel selection: the variants that can run a shape, and the fastest of them.
//
// Pure functions of shape, device and tuning.  table.cpp has the kernels, cost.h the predicted
// times.
#include "kernels/gemm/select.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/lifetime.h"
#include "base/workspace_layout.h"
#include "kernels/gemm/cost.h"
#include "kernels/gemm/plan_text.h"
#include "kernels/gemm/tuning.h"

namespace mp {

const char *why_no_wgmma(const GemmKernel &kernel, const Device &device) {
  if (device.arch != 90) return "requires sm_90";
  if (!device.has_wgmma) return "requires sm_90a code, which this build or driver lacks";
  if (static_cast<int64_t>(kernel.smem_bytes(true, true)) > device.smem_per_block)
    return "requires more shared memory than the device has";
  return nullptr;
}

const char *why_no_tma(const GemmShape &s, bool vectorized) {
  // Limits of tensor maps: cuTensorMapEncodeTiled.
  constexpr int64_t kEndOfExtents = int64_t{1} << 31;
  constexpr int64_t kEndOfStrides = int64_t{1} << 39;  // in 16-bit elements; 2^40 bytes
  if (!is_half(s.dtype_ab)) return MP_REQUIRES_HALF_TYPE;
  if (s.k == 0) return "requires k > 0";
  if (!vectorized) return "requires 16-byte aligned rows";
  if ((s.out.m | s.out.n | s.k) >= kEndOfExtents) return "requires dimensions less than 2^31";
  // The end of a slice is an int32 and may exceed k.
  if (s.k > kEndOfExtents / 2) return "requires k of at most 2^30";
  if ((s.a.ld | s.b.ld | s.a.stride | s.b.stride) >= kEndOfStrides)
    return "requires row and batch strides of less than 2^40 bytes";
  return nullptr;
}

namespace {

constexpr int64_t kMinSliceElems = 128;

const char *why_not_wmma(const GemmKernel &kernel, const GemmShape &s, const Device &device) {
  if (const char *const why = why_no_tensor_cores(s.dtype_ab, device.arch); why != nullptr)
    return why;
  const size_t smem = kernel.smem_bytes(s.op_a == MP_OP_N, s.op_b == MP_OP_T);
  if (static_cast<int64_t>(smem) > device.smem_per_block)
    return "requires more shared memory than the device has";
  return nullptr;
}

const char *why_not_thin(const GemmShape &s) {
  if (s.out.m > kThinMaxRows) return "requires m of at most 32";
  // Fewer than 64 rows that are contiguous along m have no layout for wgmma.
  if (s.op_a != MP_OP_N) return "requires op_a = MP_OP_N";
  if (s.out.items == ItemAccess::pointers) return "does not support arrays of pointers";
  return nullptr;
}

/// NULL if the kernel can run it with that cluster, else the reason.
const char *why_not(const GemmKernel &kernel, int cluster, const SelectionInput &input) {
  const OutputShape &out = input.shape.out;
  const char *why = kernel.family == GemmFamily::thin ? why_not_thin(input.shape) : nullptr;
  if (why == nullptr && uses_tma(kernel)) {
    why = why_no_wgmma(kernel, input.device);
    if (why == nullptr) why = why_no_tma(input.shape, input.vectorized);
  }
  if (kernel.family == GemmFamily::wmma) why = why_not_wmma(kernel, input.shape, input.device);
  if (kernel.family == GemmFamily::gemv && std::min(out.m, out.n) > kGemvMaxVectors)
    why = "requires m or n of at most 16";
  if (why != nullptr || cluster == 1) return why;
  if (input.device.num_sms < cluster) return "requires two SMs for a cluster";
  const TileCounts tiles = tile_counts(kernel, 1, out.m, out.n);
  if ((kernel.cluster_along_m ? tiles.m : tiles.n) < cluster)
    return "requires two adjacent tiles for a cluster";
  return nullptr;
}

/// Bits of a nonnegative float, which are ordered as the floats are.
uint32_t float_bits(double x) {
  return std::bit_cast<uint32_t>(static_cast<float>(x));
}

/// A kernel with a cluster size that can run the shape, for any split.
class Candidate {
 public:
  Candidate(const GemmKernel &kernel, int cluster, const SelectionInput &input)
      : kernel_(kernel),
        input_(input),
        tiles_(tile_counts(kernel, cluster, input.shape.out.m, input.shape.out.n)),
        counter_(kernel, cluster, input) {}

  /// NULL if the kernel can split k into that many slices, else the reason.
  const char *why_not_split(int split_k) const {
    const OutputShape &out = input_.shape.out;
    // The divisors of a scheduler (tile_scheduler.h).
    if (uses_tma(kernel_) && num_tiles() * split_k >= 0x1p31)
      return "requires fewer than 2^31 tiles and slices";
    if (split_k == 1) return nullptr;
    const int64_t slice = k_per_slice(kernel_, input_.shape.k, split_k);
    // Blocks of a thin kernel share the k-tiles evenly.
    const bool last_is_empty =
        kernel_.family != GemmFamily::thin && slice * (split_k - 1) >= input_.shape.k;
    if (slice < kMinSliceElems || last_is_empty) return "requires a larger k for this split";
    // split_k_sum divides numbers of 31 bits; it adds all stride phases and groups of a convolution
    // at once.
    const double quads = static_cast<double>(out.m) * static_cast<double>((out.n + 3) / 4) *
                         static_cast<double>(out.batch_count);
    return quads < 0x1p31 ? nullptr : "requires D to have fewer than 2^33 elements with this split";
  }

  /// Order of equally fast variants: by family, then by the elements of all tiles, since those
  /// beyond D cost power.  Thin kernels prefer more blocks, which have more loads in flight.
  uint32_t tie_break(int split_k) const {
    const double elems = static_cast<double>(tiles_.m) * kernel_.tile_m *
                         static_cast<double>(tiles_.n) * kernel_.tile_n;
    const int fewer = kernel_.family == GemmFamily::thin ? kMaxClusterParts - split_k : 0;
    return (static_cast<uint32_t>(kernel_.family) << 29 | float_bits(elems) >> 9) +
           static_cast<uint32_t>(fewer);
  }

  PlanCost cost(int split_k, int parts) const { return counter_.count(split_k, parts); }
  float us(const PlanCost &cost) const {
    return static_cast<float>(predicted_us(cost, input_.tuning, input_.tuning.of(kernel_)));
  }
  GemmWorkspace workspace(int split_k, int parts) const {
    return gemm_workspace(kernel_, input_.shape.out, split_k / parts, input_.copies);
  }

 private:
  double num_tiles() const {
    return static_cast<double>(tiles_.m) * static_cast<double>(tiles_.n) *
           input_.shape.out.batch_count;
  }

  const GemmKernel &kernel_;
  const SelectionInput &input_;
  const TileCounts tiles_;
  const CostCounter counter_;
};

/// NULL if the variant does not read operands in this way.
const char *name_of(const GemmVariant &variant, const SelectionInput &input) {
  return input.copies.bytes() > 0 ? variant.copied_name : variant.name;
}

/// A variant that can run.  Keys order by predicted time; ties: in place first, then by
/// tie_break().  Among equal keys the first is preferred: it has the larger tile or the smaller
/// split.
struct KeyedGemm : RankedGemm {
  uint64_t key = UINT64_MAX;
};

/// Calls visit(entry) for each variant with these tiles that can run.
template <class Visit>
void for_each_runnable(GemmTiles tiles, const SelectionInput &input, const Visit &visit) {
  const bool reads_copies = input.copies.bytes() > 0;
  std::optional<Candidate> candidate;
  for (const GemmVariant &variant : gemm_variants()) {
    if (variant.split_k == 1) {
      candidate.reset();
      if ((tiles & gemm_tiles(variant.kernel->tile)) != 0 && name_of(variant, input) != nullptr &&
          why_not(*variant.kernel, variant.multicast, input) == nullptr)
        candidate.emplace(*variant.kernel, variant.multicast, input);
    }
    if (!candidate || candidate->why_not_split(variant.split_k) != nullptr) continue;
    // The grid of such a kernel has a cluster per tile.
    if (input.device.has_sm_limit && variant.parts > 1) continue;
    const float us = candidate->us(candidate->cost(variant.split_k, variant.parts));
    visit(KeyedGemm{
        {&variant, reads_copies, us, candidate->workspace(variant.split_k, variant.parts).bytes,
         name_of(variant, input)},
        uint64_t{float_bits(us)} << 33 | uint64_t{reads_copies} << 32 |
            candidate->tie_break(variant.split_k)});
  }
}

/// Calls visit(entry) for each variant that can run a GEMM, in place or with copies.
template <class Visit>
void for_each_gemm(const GemmShape &shape, const PlanRequest &request, const Visit &visit) {
  for_each_runnable(kAllGemmTiles, {shape, request}, visit);
  const AlignedCopies copies = aligned_copies(shape);
  if (copies.bytes() > 0) for_each_runnable(kAllGemmTiles, {shape, request, copies}, visit);
}

/// Sorts the entries that for_each visits, fastest first; may be empty.
template <class ForEach>
std::vector<RankedGemm> rank(const ForEach &for_each) {
  std::vector<KeyedGemm> runnable;
  runnable.reserve(gemm_variants().size());
  for_each([&](const KeyedGemm &entry) { runnable.push_back(entry); });
  std::ranges::stable_sort(runnable, {}, &KeyedGemm::key);
  return {runnable.begin(), runnable.end()};
}

/// First entries of rank_gemm: of all, and of those within the workspace.
struct Fastest {
  KeyedGemm of_all, that_fits;
};

Fastest find_fastest(const GemmShape &shape, const PlanRequest &request) {
  Fastest fastest{};
  for_each_gemm(shape, request, [&](const KeyedGemm &entry) {
    if (entry.key < fastest.of_all.key) fastest.of_all = entry;
    if (entry.key < fastest.that_fits.key && entry.workspace_bytes <= request.workspace_bytes)
      fastest.that_fits = entry;
  });
  return fastest;
}

GemmPlan make_plan(const GemmVariant &variant, const SelectionInput &input,
                   size_t workspace_bytes) {
  const Candidate candidate(*variant.kernel, variant.multicast, input);
  const OutputShape &out = input.shape.out;
  const bool is_thin = variant.kernel->family == GemmFamily::thin,
             is_wgmma = variant.kernel->family == GemmFamily::wgmma,
             is_split = variant.split_k > 1 && !is_thin;
  const PlanCost cost = candidate.cost(variant.split_k, variant.parts);
  GemmPlan plan{.kernel = variant.kernel,
                .split_k = variant.split_k,
                .parts = variant.parts,
                .multicast = variant.multicast,
                .name = name_of(variant, input),
                .store = !is_wgmma || variant.parts > 1 ? StorePath::staged
                         : is_split                     ? StorePath::direct
                                                        : input.store,
                .source = is_split ? EpilogueSource::none : epilogue_source(out),
                .copies = input.copies,
                .workspace = candidate.workspace(variant.split_k, variant.parts),
                .can_fuse_dbias = input.can_fuse_dbias(*variant.kernel) && !is_split,
                .fallback = is_wgmma && out.items == ItemAccess::pointers
                                ? &kernel_of(GemmTile::wmma_128x128x32_s3)
                                : nullptr,
                .predicted_us = candidate.us(cost),
                .cost = cost,
                .num_sms = input.device.num_sms};
  if (out.epilogue.has_dbias)
    plan.dbias = plan_dbias(out, plan.can_fuse_dbias, plan.workspace.bytes, workspace_bytes);
  return plan;
}

/// Makes the plan of the variant that has `name` as `its_name`; else returns false, and the reason
/// or NULL.
bool plan_named(const char *GemmVariant::*its_name, const char *name, const SelectionInput &input,
                size_t workspace_bytes, GemmPlan *plan, const char **why) {
  *why = nullptr;
  for (const GemmVariant &variant : gemm_variants()) {
    if (variant.*its_name == nullptr || std::strcmp(variant.*its_name, name) != 0) continue;
    *why = why_not(*variant.kernel, variant.multicast, input);
    if (*why == nullptr)
      *why = Candidate(*variant.kernel, variant.multicast, input).why_not_split(variant.split_k);
    if (*why != nullptr) return false;
    *plan = make_plan(variant, input, workspace_bytes);
    return true;
  }
  return false;
}

}  // namespace

std::vector<RankedGemm> rank_in_place(GemmTiles tiles, const GemmShape &shape,
                                      const PlanRequest &request, const ConvTraits *conv) {
  return rank([&](const auto &visit) {
    for_each_runnable(tiles, {shape, request, {}, conv}, visit);
  });
}

GemmPlan plan_variant(const GemmVariant &variant, const GemmShape &shape,
                      const PlanRequest &request, const ConvTraits *conv) {
  return make_plan(variant, {shape, request, {}, conv}, request.workspace_bytes);
}

std::vector<RankedGemm> rank_gemm(const GemmShape &shape, const PlanRequest &request) {
  return rank([&](const auto &visit) { for_each_gemm(shape, request, visit); });
}

GemmPlan plan_ranked(const RankedGemm &entry, const GemmShape &shape, const PlanRequest &request) {
  const AlignedCopies copies = entry.reads_copies ? aligned_copies(shape) : AlignedCopies{};
  return make_plan(*entry.variant, {shape, request, copies}, request.workspace_bytes);
}

std::vector<GemmPlan> fastest_gemm_plans(const GemmShape &shape, const PlanRequest &request,
                                         int32_t max_count) {
  return first_plans(rank_gemm(shape, request), request.workspace_bytes, max_count,
                     [&](const RankedGemm &entry) { return plan_ranked(entry, shape, request); });
}

GemmPlan plan_gemm(const GemmShape &shape, const PlanRequest &request, const char *measured) {
  const auto fastest_us = [&](const GemmShape &other) {
    return double{find_fastest(other, request).that_fits.predicted_us};
  };
  const auto [of_all, that_fits] = find_fastest(shape, request);
  GemmPlan best;
  const char *why;
  if (measured == nullptr || !plan_named_gemm(shape, request, measured, &best, &why) ||
      workspace_bytes_of(best) > request.workspace_bytes ||
      (request.device.has_sm_limit && best.parts > 1))
    best = plan_ranked(that_fits, shape, request);
  const bool is_best = best.name == of_all.name && (best.copies.bytes() > 0) == of_all.reads_copies;
  best.best_workspace_bytes =
      best_workspace_bytes(shape.out, is_best ? best : plan_ranked(of_all, shape, request));
  best.predicted_us = std::min(best.predicted_us, double{that_fits.predicted_us});
  best.best_us = of_all.predicted_us;
  if (!slow_path_reason(shape, request.device).empty())
    best.aligned_us = fastest_us(without_slow_path(shape, request.device));
  GemmShape mapped = shape;
  mapped.out = aligned_for_tma_store(shape.out);
  if (request.device.has_wgmma && wgmma_store_path(shape.out) == StorePath::staged &&
      wgmma_store_path(mapped.out) == StorePath::tma)
    best.mapped_us = fastest_us(mapped);
  return best;
}

bool plan_named_in_place(const GemmShape &shape, const PlanRequest &request, const char *name,
                         GemmPlan *plan, const char **why, const ConvTraits *conv) {
  return plan_named(&GemmVariant::name, name, {shape, request, {}, conv}, request.workspace_bytes,
                    plan, why);
}

bool plan_named_gemm(const GemmShape &shape, const PlanRequest &request, const char *name,
                     GemmPlan *plan, const char **why) {
  if (plan_named_in_place(shape, request, name, plan, why)) return true;
  const AlignedCopies copies = aligned_copies(shape);
  const char *why_no_copies;
  if (!plan_named(&GemmVariant::copied_name, name, {shape, request, copies},
                  request.workspace_bytes, plan, &why_no_copies)) {
    if (why_no_copies != nullptr) *why = why_no_copies;
    return false;
  }
  if (copies.bytes() > 0) return true;
  *why =
      "requires 16-byte aligned matrices and an ld or stride that is not a multiple of 8, and does "
      "not support arrays of pointers";
  return false;
}

GemmPlan plan_for_any_rows(const GemmShape &shape, const PlanRequest &request) {
  const std::vector<RankedGemm> ranked = rank_gemm(shape, request);
  const RankedGemm &best = *std::ranges::find_if(ranked, [&](const RankedGemm &entry) {
    return entry.variant->kernel->family > GemmFamily::thin &&
           entry.workspace_bytes <= request.workspace_bytes;
  });
  return plan_ranked(best, shape, request);
}

GemmPlan adapt_plan(const GemmShape &shape, const GemmPlan &planned, const PlanRequest &request) {
  GemmPlan plan;
  const char *why;
  if (plan_named_gemm(shape, request, planned.name, &plan, &why) &&
      plan.workspace.bytes <= request.workspace_bytes)
    return plan;
  return plan_gemm(shape, request);
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
