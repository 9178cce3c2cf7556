// Kernel selection for convolutions.  A kernel is priced as the GEMM that it computes.
//
// The kernels are GEMM kernels with other loaders, so the constants that mptune fits for GEMM apply
// to both.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/lifetime.h"
#include "base/workspace_layout.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/conv/conv_problem.h"
#include "kernels/gemm/cost.h"
#include "kernels/gemm/plan_text.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tuning.h"

namespace mp {

namespace {

// ---------------------------------------------------------------------------- GEMM kernels

constexpr std::string_view kPrefix = "conv_", kIm2colPrefix = "conv_wgmma";
constexpr std::string_view kWmmaPrefix = "conv_wmma";
/// Suffix of kernels that read copies of the image and the filter.
constexpr std::string_view kCopied = "_copied";

ConvFamily family_of(std::string_view name) {
  if (name.starts_with(kIm2colPrefix)) return ConvFamily::im2col;
  return name.starts_with(kPrefix) ? ConvFamily::implicit : ConvFamily::gemm;
}

/// Returns "conv_" and the name of the GEMM kernel, or that name if the kernel runs as it is.
const char *conv_name(ConvFamily family, const char *gemm_name, bool reads_copies = false) {
  if (family == ConvFamily::gemm) return gemm_name;
  struct Names {
    std::string in_place, copied;
  };
  const auto &names = lazy_init([] {
    std::unordered_map<const char *, Names> all;
    for (const GemmVariant &variant : gemm_variants()) {
      const std::string name = std::string(kPrefix) + variant.name;
      all.emplace(variant.name, Names{name, name + std::string(kCopied)});
    }
    return all;
  });
  const Names &own = names.at(gemm_name);
  return (reads_copies ? own.copied : own.in_place).c_str();
}

bool is_aligned(const ConvProblem &p) {
  return alignment_of(p.image) == 16 && alignment_of(p.other) == 16;
}

/// Returns a GEMM that costs as much as the implicit product.
GemmShape implicit_gemm(const ConvProblem &p) {
  const ProductShape product = product_shape(p);
  GemmShape gemm = shape_of(operands_of(p));
  gemm.out.m = product.m;
  gemm.out.n = product.n;
  gemm.k = product.k;
  gemm.out.batch_count = product.count;
  const VectorOperands vectors = vector_operands(p);
  const int32_t alignment = is_aligned(p) ? 16 : 1;
  const MatrixLayout image{.ld = vectors.image ? 8 : 1, .alignment = alignment};
  const MatrixLayout other{.ld = vectors.other ? 8 : 1, .alignment = alignment};
  gemm.a = p.op == MP_CONV_WGRAD ? other : image;
  gemm.b = p.op == MP_CONV_WGRAD ? image : other;
  return gemm;
}

/// Returns the mean k of the stride phases of dgrad that have taps, given the longest: every tap
/// belongs to exactly one phase.
int64_t mean_phase_k(const ConvShape &s, int64_t k) {
  const DgradDirection h = dgrad_h(s), w = dgrad_w(s);
  const int64_t phases = int64_t{h.reached} * w.reached;
  const int64_t all = k / (int64_t{h.taps} * w.taps) * s.r * s.s;
  return (all + phases - 1) / phases;
}

/// Returns the number of products of dgrad without taps.
int64_t empty_products(const ConvShape &s) {
  const DgradDirection h = dgrad_h(s), w = dgrad_w(s);
  return s.groups * (int64_t{h.phases} * w.phases - int64_t{h.reached} * w.reached);
}

/// Returns the product of the kernels of a family, or a GEMM that takes as long.
GemmShape gemm_of(const ConvProblem &p, ConvFamily family) {
  if (family == ConvFamily::gemm) return shape_of(pointwise_gemm(p));
  if (family == ConvFamily::implicit) {
    GemmShape gemm = implicit_gemm(p);
    if (p.op == MP_CONV_DGRAD) gemm.k = mean_phase_k(p.shape, gemm.k);
    return gemm;
  }
  GemmShape gemm = shape_of(im2col_gemm(p));
  gemm.a.alignment = gemm.b.alignment = is_aligned(p) ? 16 : 1;
  if (p.op == MP_CONV_DGRAD) gemm.k = mean_phase_k(p.shape, gemm.k);
  return gemm;
}

/// Returns the properties that a GEMM lacks: pixels occur in several patches, but in memory once.
ConvTraits conv_traits(const ConvProblem &p, ConvFamily family) {
  const ConvShape &s = p.shape;
  const double line = p.row_stride != 0 ? double(p.row_stride) : double(s.w) * s.c;
  const double x = double(s.n) * s.h * line, y = double(s.n) * s.p * s.q * s.k;
  const double filter = double(s.k) * s.r * s.s * group_c(s);
  const double read = p.op == MP_CONV_FPROP   ? x + filter
                      : p.op == MP_CONV_DGRAD ? y + filter
                                              : x + y;
  return {.memory_mb = read * dtype_bytes(p.dtype) * kMb,
          .is_wgrad = p.op == MP_CONV_WGRAD,
          .has_stride_phases = is_strided_dgrad(p),
          .empty_items = p.op == MP_CONV_DGRAD ? empty_products(s) : 0,
          .store = family == ConvFamily::im2col && why_no_im2col(p) == nullptr ? im2col_store(p)
                                                                               : StorePath::staged};
}

/// Returns NULL for the family gemm, whose kernels read matrices.
const ConvTraits *traits_for(ConvFamily family, const ConvTraits &traits) {
  return family == ConvFamily::gemm ? nullptr : &traits;
}

/// Returns NULL if some kernel of that family can run the problem, else the reason.
const char *why_not_family(const ConvProblem &p, ConvFamily family) {
  if (family == ConvFamily::im2col) return why_no_im2col(p);
  if (family == ConvFamily::implicit || is_pointwise(p.shape)) return nullptr;
  return "requires a 1 x 1 filter with stride 1, no padding and groups = 1";
}

/// Returns the tiles of a family and a pass: tiles with few rows for wgrad, whose rows are the K
/// channels, narrow ones for the others, whose columns are channels.
GemmTiles tiles_of(ConvFamily family, mp_conv_op_t op) {
  if (family == ConvFamily::gemm) return kAllGemmTiles;
  if (family == ConvFamily::implicit)
    return WmmaTiles::kSet | (op == MP_CONV_WGRAD ? WgradSimtTiles::kSet : ConvSimtTiles::kSet);
  return op == MP_CONV_WGRAD ? WgradWgmmaTiles::kSet : ConvWgmmaTiles::kSet;
}

/// Returns the tiles for a problem: strided dgrad has its own kernel.
GemmTiles tiles_for(ConvFamily family, const ConvProblem &p) {
  const bool has_own_kernel = family == ConvFamily::im2col && is_strided_dgrad(p);
  return has_own_kernel ? StridedDgradWgmmaTiles::kSet : tiles_of(family, p.op);
}

bool is_one_of(GemmTiles tiles, const GemmKernel &kernel) {
  return (tiles & gemm_tiles({kernel.tile})) != 0;
}

/// Completes a plan with dbias, which reads the output as it is written.
ConvPlan conv_plan(const ConvProblem &p, ConvFamily family, const char *name, const GemmPlan &gemm,
                   const PlanRequest &request, const PaddedImage &copy = {}) {
  ConvPlan plan{family, name, gemm, copy};
  if (p.out.epilogue.dbias != nullptr)
    plan.gemm.dbias = plan_dbias(shape_of(p.out), gemm.can_fuse_dbias, gemm.workspace.bytes,
                                 request.workspace_bytes);
  return plan;
}

// ---------------------------------------------------------------------------- padded image

constexpr std::array kCopyingFamilies = {ConvFamily::im2col, ConvFamily::implicit};

/// The product of a family that reads copies.
struct CopiedProduct {
  ConvFamily family;
  PaddedImage copy;
  GemmTiles tiles;
  GemmShape gemm;
  ConvTraits traits;

  CopiedProduct(const ConvProblem &p, ConvFamily family)
      : family(family),
        copy(family == ConvFamily::im2col ? window_image(p) : padded_image(p)),
        tiles(family == ConvFamily::im2col ? tiles_of(family, p.op) : WmmaTiles::kSet) {
    const ConvProblem padded = exists() ? with_padded_image(p, copy) : p;
    gemm = gemm_of(padded, family);
    // Windows are read through L2 from the copy, which is larger than x.
    traits = conv_traits(copy.has_windows() ? padded : p, family);
  }

  bool exists() const { return copy.bytes() > 0; }

  double copies_us(const PlanRequest &request) const {
    const ClassTuning &constants = request.tuning.of(class_of(request.device));
    return copy.launches() * constants.launch_us + copy.mb() * constants.copy_us_per_mb;
  }

  ConvPlan plan(const ConvProblem &p, GemmPlan kernel, const PlanRequest &request) const {
    kernel.workspace.slices += copy.bytes();
    kernel.workspace.bytes += copy.bytes();
    kernel.predicted_us += copies_us(request);
    return conv_plan(p, family, conv_name(family, kernel.name, true), kernel, request, copy);
  }
};

/// Returns NULL if kernels of that family can read copies of the image, else the reason.
const char *why_no_copies(const CopiedProduct &product, const Device &device) {
  if (!product.exists())
    return product.family == ConvFamily::im2col
               ? "requires fprop or wgrad of a 16-bit x with c of at most 8, k a multiple of 8, "
                 "groups = 1, dilation_w = 1, and sizes within the limits of im2col TMA"
               : "requires fprop or wgrad of a 16-bit x with groups = 1 and unaligned rows of taps";
  return product.copy.has_windows() && device.has_wgmma && !device.has_overlapping_maps
             ? "requires a driver that encodes tensor maps with overlapping pixels"
             : nullptr;
}

/// Implements plan_named_conv for "conv_wmma_..._copied" and "conv_wgmma_..._copied".
bool plan_copied(const ConvProblem &problem, const PlanRequest &request, std::string name,
                 ConvPlan *plan, const char **why) {
  const CopiedProduct product(problem, family_of(name));
  name.resize(name.size() - kCopied.size());
  GemmPlan found;
  const bool is_found = plan_named_in_place(product.gemm, request, name.c_str() + kPrefix.size(),
                                            &found, why, &product.traits);
  if (!is_found && *why == nullptr) return false;
  if (const char *const why_not = why_no_copies(product, request.device)) *why = why_not;
  if (!is_found || *why != nullptr) return false;
  if (!is_one_of(product.tiles, *found.kernel)) {
    *why = "does not support this pass";
    return false;
  }
  *plan = product.plan(problem, found, request);
  return true;
}

// ---------------------------------------------------------------------------- depthwise

struct DepthwiseVariant {
  const char *name;
  int32_t split_k;
};
constexpr std::array kDepthwise = {
    DepthwiseVariant{"conv_depthwise", 1}, DepthwiseVariant{"conv_depthwise_k4", 4},
    DepthwiseVariant{"conv_depthwise_k16", 16}, DepthwiseVariant{"conv_depthwise_k64", 64},
    DepthwiseVariant{"conv_depthwise_k256", 256}};

const char *why_not_depthwise(const ConvProblem &p, int32_t split_k) {
  const ConvShape &s = p.shape;
  if (s.c == 1 || s.groups != s.c || s.groups != s.k) return "requires groups = c = k > 1";
  if (int64_t{s.r} * s.s > kMaxDepthwiseTaps) return "requires a filter of at most 128 taps";
  if (split_k == 1) return nullptr;
  if (p.op != MP_CONV_WGRAD) return "supports split-k only in wgrad";
  constexpr int64_t kMinSliceRows = 32;
  return int64_t{s.n} * s.p * s.q >= split_k * kMinSliceRows
             ? nullptr
             : "requires more output pixels for this split";
}

/// Returns the time of one read or write of both tensors, or of the multiply-adds if longer: 2^22
/// of them take kSlowdown times as long as 1024 elements of k in a tile of simt_64x64.  kSlowdown
/// is an estimate, not measured: simt_64x64 uses each value eight times, depthwise kernels do not.
double depthwise_us(const ConvProblem &p, const PlanRequest &request, int32_t split_k) {
  constexpr double kTileMultiplyAdds = 1 << 22, kSlowdown = 4, kChannelsPerBlock = 64;
  const auto simt = std::ranges::find(gemm_kernels(), GemmTile::simt_64x64, &GemmKernel::tile);
  const ConvShape &s = p.shape;
  const Device &device = request.device;
  const ClassTuning &constants = request.tuning.of(class_of(device));
  const double inputs = double(s.n) * s.h * s.w * s.c, outputs = double(s.n) * s.p * s.q * s.c;
  const double elem_mb = dtype_bytes(p.dtype) * kMb;
  const double blocks =
      p.op == MP_CONV_WGRAD ? std::ceil(s.c / kChannelsPerBlock) * split_k : device.num_sms;
  const double sms = std::min<double>(blocks, device.num_sms);
  const double work_us = outputs * s.r * s.s / kTileMultiplyAdds * kSlowdown *
                         constants.of(*simt).k_us / std::max(sms, 1.0);
  const double data_us = (inputs + outputs) * elem_mb * constants.dram_us_per_mb;
  const OutputShape out = shape_of(p.out);
  const DbiasPass dbias = count_dbias(out, plan_column_sum(out, SIZE_MAX), device);
  return ((split_k > 1 ? 2 : 1) + dbias.launches) * constants.launch_us +
         std::max(work_us, data_us) + dbias.mb * constants.dram_us_per_mb;
}

size_t depthwise_bytes(const ConvProblem &p, int32_t split_k) {
  const size_t sums = split_k == 1 ? 0 : static_cast<size_t>(split_k);
  return sums * sizeof(float) * static_cast<size_t>(p.out.m) * static_cast<size_t>(p.out.n);
}

ConvPlan plan_depthwise(const ConvProblem &p, const PlanRequest &request,
                        const DepthwiseVariant &variant) {
  GemmPlan gemm{};
  gemm.split_k = variant.split_k;
  gemm.workspace.bytes = depthwise_bytes(p, variant.split_k);
  gemm.predicted_us = depthwise_us(p, request, variant.split_k);
  return conv_plan(p, ConvFamily::depthwise, variant.name, gemm, request);
}

// ---------------------------------------------------------------------------- ranking and lookup

/// Returns the problem without the first property that conv_slow_path_reason finds.
ConvProblem without_slow_path(const ConvProblem &problem, const Device &device) {
  ConvProblem better = problem;
  better.image = better.other = nullptr;
  if (!is_aligned(problem)) return better;
  if (!why_slow_dtype(problem.dtype, device).empty()) {
    better.dtype = MP_FP16;
    return better;
  }
  ConvShape &s = better.shape;
  s.c = s.groups * align_up(group_c(s), 8);
  s.k = s.groups * align_up(group_k(s), 8);
  const Output whole = output_matrix(s, problem.op);
  better.out.m = whole.m;
  better.out.n = whole.n;
  better.out.c.ld = better.out.d.ld = whole.n;
  return better;
}

/// Families in order of preference in a tie: GEMM kernels do not compute addresses of patches.
constexpr std::array kGemmFamilies = {ConvFamily::gemm, ConvFamily::im2col, ConvFamily::implicit};

ConvPlan plan_of(const RankedConv &entry, const ConvProblem &problem, const PlanRequest &request) {
  if (entry.variant == nullptr)
    return plan_depthwise(problem, request, {entry.name, entry.split_k});
  if (entry.reads_copies) {
    const CopiedProduct product(problem, entry.family);
    const GemmPlan gemm = plan_variant(*entry.variant, product.gemm, request, &product.traits);
    return product.plan(problem, gemm, request);
  }
  const ConvTraits traits = conv_traits(problem, entry.family);
  const GemmPlan gemm = plan_variant(*entry.variant, gemm_of(problem, entry.family), request,
                                     traits_for(entry.family, traits));
  return conv_plan(problem, entry.family, entry.name, gemm, request);
}

}  // namespace

std::vector<RankedConv> rank_conv(const ConvProblem &problem, const PlanRequest &request) {
  std::vector<RankedConv> all;
  const auto add = [&](ConvFamily family, const RankedGemm &gemm, const char *name, double more_us,
                       size_t more_bytes) {
    all.push_back({family, gemm.variant, gemm.variant->split_k, more_bytes > 0,
                   gemm.predicted_us + more_us, gemm.workspace_bytes + more_bytes, name});
  };
  for (const ConvFamily family : kGemmFamilies) {
    if (why_not_family(problem, family) != nullptr) continue;
    const ConvTraits traits = conv_traits(problem, family);
    for (const RankedGemm &gemm :
         rank_in_place(tiles_for(family, problem), gemm_of(problem, family), request,
                       traits_for(family, traits)))
      add(family, gemm, conv_name(family, gemm.name), 0, 0);
  }
  for (const ConvFamily family : kCopyingFamilies) {
    const CopiedProduct product(problem, family);
    if (why_no_copies(product, request.device) != nullptr) continue;
    for (const RankedGemm &gemm :
         rank_in_place(product.tiles, product.gemm, request, &product.traits))
      add(family, gemm, conv_name(family, gemm.name, true), product.copies_us(request),
          product.copy.bytes());
  }
  for (const DepthwiseVariant &variant : kDepthwise)
    if (why_not_depthwise(problem, variant.split_k) == nullptr)
      all.push_back({ConvFamily::depthwise, nullptr, variant.split_k, false,
                     depthwise_us(problem, request, variant.split_k),
                     depthwise_bytes(problem, variant.split_k), variant.name});
  std::ranges::stable_sort(all, {}, &RankedConv::predicted_us);
  return all;
}

ConvPlan plan_conv(const ConvProblem &problem, const PlanRequest &request) {
  const std::vector<RankedConv> ranked = rank_conv(problem, request);
  const OutputShape out = shape_of(problem.out);
  ConvPlan best = plan_of(first_that_fits(ranked, request.workspace_bytes), problem, request);
  best.gemm.best_workspace_bytes =
      best_workspace_bytes(out, plan_of(ranked[0], problem, request).gemm);
  best.gemm.best_us = ranked[0].predicted_us;
  if (conv_slow_path_reason(problem, request.device).empty()) return best;
  const std::vector<RankedConv> better =
      rank_conv(without_slow_path(problem, request.device), request);
  best.gemm.aligned_us = first_that_fits(better, request.workspace_bytes).predicted_us;
  return best;
}

bool plan_named_conv(const ConvProblem &problem, const PlanRequest &request, const char *name,
                     ConvPlan *plan, const char **why) {
  if (const std::string_view copied = name;
      copied.ends_with(kCopied) &&
      (copied.starts_with(kIm2colPrefix) || copied.starts_with(kWmmaPrefix)))
    return plan_copied(problem, request, name, plan, why);
  for (const DepthwiseVariant &variant : kDepthwise) {
    if (std::string_view(name) != variant.name) continue;
    *why = why_not_depthwise(problem, variant.split_k);
    if (*why != nullptr) return false;
    *plan = plan_depthwise(problem, request, variant);
    return true;
  }
  const ConvFamily family = family_of(name);
  const char *const gemm_name = family == ConvFamily::gemm ? name : name + kPrefix.size();
  GemmPlan found;
  const ConvTraits traits = conv_traits(problem, family);
  const bool is_found = plan_named_in_place(gemm_of(problem, family), request, gemm_name, &found,
                                            why, traits_for(family, traits));
  if (!is_found && *why == nullptr) return false;
  if (const char *const why_not = why_not_family(problem, family)) {
    *why = why_not;
    return false;
  }
  if (!is_found) return false;
  if (!is_one_of(tiles_for(family, problem), *found.kernel)) {
    *why = "does not support this pass";
    return false;
  }
  *plan = conv_plan(problem, family, conv_name(family, found.name), found, request);
  return true;
}

std::span<const char *const> conv_names(mp_conv_op_t op) {
  const auto &names = lazy_init([] {
    std::array<std::vector<const char *>, MP_CONV_WGRAD + 1> all;
    for (const mp_conv_op_t pass : {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD}) {
      for (const ConvFamily family : kGemmFamilies)
        for (const GemmVariant &variant : gemm_variants())
          if (is_one_of(tiles_of(family, pass), *variant.kernel))
            all[pass].push_back(conv_name(family, variant.name));
      for (const GemmVariant &variant : gemm_variants()) {
        if (pass == MP_CONV_DGRAD) break;  // reads no copies
        if (is_one_of(WmmaTiles::kSet, *variant.kernel))
          all[pass].push_back(conv_name(ConvFamily::implicit, variant.name, true));
        if (is_one_of(tiles_of(ConvFamily::im2col, pass), *variant.kernel))
          all[pass].push_back(conv_name(ConvFamily::im2col, variant.name, true));
      }
      for (const DepthwiseVariant &variant : kDepthwise) all[pass].push_back(variant.name);
    }
    return all;
  });
  return names[op];
}

std::string conv_slow_path_reason(const ConvProblem &problem, const Device &device) {
  if (problem.dtype == MP_FP32) return "";
  if (!is_aligned(problem)) return "a tensor is not 16-byte aligned";
  const auto reason = [](const char *name, int32_t value) {
    return std::string(name) + " = " + std::to_string(value) + " is not a multiple of 8";
  };
  if (why_not_depthwise(problem, 1) == nullptr) return "";
  if (const std::string why = why_slow_dtype(problem.dtype, device); !why.empty()) return why;
  const bool segments_are_rows = problem.op != MP_CONV_DGRAD && segment_shape(problem).taps_w == 1;
  if (group_c(problem.shape) % 8 != 0 && !segments_are_rows)
    return reason("c / groups", group_c(problem.shape));
  if (group_k(problem.shape) % 8 != 0) return reason("k / groups", group_k(problem.shape));
  return "";
}

}  // namespace mp
