// Kernel selection for convolutions: each is priced as the GEMM that it computes.
//
// The kernels are GEMM kernels with other loaders and share the constants of the GEMM cost model:
// mptune tunes both.
#include "kernels/conv/implicit_gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/lazy_init.h"
#include "kernels/conv/im2col.h"
#include "kernels/conv/padded_image.h"
#include "kernels/conv/select_reasons.h"
#include "kernels/gemm/dbias.h"
#include "kernels/gemm/predict_epilogue.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/select_reasons.h"
#include "kernels/gemm/tuning.h"

namespace mp {

namespace {

// ---------------------------------------------------------------------------- GEMM kernels

constexpr std::string_view kPrefix = "conv_", kIm2colPrefix = "conv_wgmma";
/// Prefix and suffix of the names of kernels that read a padded copy of the image.
constexpr std::string_view kCopiedPrefix = "conv_wmma", kCopied = "_copied";

ConvFamily family_of(std::string_view name) {
  if (name.starts_with(kIm2colPrefix)) return ConvFamily::im2col;
  return name.starts_with(kPrefix) ? ConvFamily::implicit : ConvFamily::gemm;
}

/// Returns "conv_" and the name of the GEMM kernel, or the name alone for a plain GEMM kernel.
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

/// Returns a GEMM that costs as much as the implicit product.
GemmProblem implicit_gemm(const ConvProblem &p) {
  const ProductShape shape = product_shape(p);
  GemmProblem gemm = operands_of(p);
  gemm.out.m = shape.m;
  gemm.out.n = shape.n;
  gemm.k = shape.k;
  gemm.out.batch_count = shape.count;
  const VectorOperands vectors = vector_operands(p);
  gemm.a.ld = gemm.b.ld = 1;
  if (vectors.image) (p.op == MP_CONV_WGRAD ? gemm.b : gemm.a).ld = 8;
  if (vectors.other) (p.op == MP_CONV_WGRAD ? gemm.a : gemm.b).ld = 8;
  return gemm;
}

/// Returns the mean k of the stride phases of dgrad.  `k`: that of the largest.  Each tap belongs
/// to exactly one phase.
int64_t mean_class_k(const ConvShape &s, int64_t k) {
  const DgradDirection h = dgrad_h(s), w = dgrad_w(s);
  const int64_t classes = int64_t{h.classes} * w.classes;
  const int64_t all = k / (int64_t{h.taps} * w.taps) * s.r * s.s;
  return (all + classes - 1) / classes;
}

/// Returns the GEMM that the kernels of a family compute, or one that takes as long.
GemmProblem gemm_of(const ConvProblem &p, ConvFamily family) {
  if (family == ConvFamily::gemm) return pointwise_gemm(p);
  GemmProblem gemm = family == ConvFamily::im2col ? im2col_gemm(p) : implicit_gemm(p);
  if (p.op == MP_CONV_DGRAD) gemm.k = mean_class_k(p.shape, gemm.k);
  return gemm;
}

/// Returns the memory traffic of the operands: a pixel is in many patches, but is read once.
PatchOperands patch_operands(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  const double x = double(s.n) * s.h * s.w * s.c, y = double(s.n) * s.p * s.q * s.k;
  const double filter = double(s.k) * s.r * s.s * group_c(s);
  const double read = p.op == MP_CONV_FPROP   ? x + filter
                      : p.op == MP_CONV_DGRAD ? y + filter
                                              : x + y;
  return {read * elem_bytes(p.dtype) * kMb, p.op == MP_CONV_WGRAD};
}

/// Returns NULL for plain GEMM kernels, which read matrices.
const PatchOperands *read_by(ConvFamily family, const PatchOperands &patches) {
  return family == ConvFamily::gemm ? nullptr : &patches;
}

/// Returns NULL, or the reason why no kernel of a family supports the problem.
const char *why_not_family(const ConvProblem &p, ConvFamily family) {
  if (family == ConvFamily::im2col) return why_no_im2col(p);
  if (family == ConvFamily::implicit || is_pointwise(p.shape)) return nullptr;
  return "requires a 1 x 1 filter with stride 1, no padding and groups = 1";
}

/// Returns the tiles of a family for a pass: wgrad also has tiles with few rows, because its rows
/// are the K channels; the others have tiles with few columns, because their columns are channels.
GemmTiles tiles_of(ConvFamily family, mp_conv_op_t op) {
  if (family == ConvFamily::gemm) return kAllGemmTiles;
  if (family == ConvFamily::implicit)
    return WmmaTiles::kSet | (op == MP_CONV_WGRAD ? WgradSimtTiles::kSet : ConvSimtTiles::kSet);
  return op == MP_CONV_WGRAD ? WgradWgmmaTiles::kSet : ConvWgmmaTiles::kSet;
}

/// Returns the tiles of a family for a problem: a strided dgrad has a separate kernel.
GemmTiles tiles_for(ConvFamily family, const ConvProblem &p) {
  const bool is_own = family == ConvFamily::im2col && is_strided_dgrad(p);
  return is_own ? StridedDgradWgmmaTiles::kSet : tiles_of(family, p.op);
}

bool is_one_of(GemmTiles tiles, const GemmKernel &kernel) {
  return (tiles & gemm_tiles({kernel.tile})) != 0;
}

/// Returns the plan of a convolution.  The output of `gemm` is at least as large, so its workspace
/// suffices.
ConvPlan choice_of(const ConvProblem &p, ConvFamily family, GemmPlan gemm) {
  if (is_strided_dgrad(p))
    gemm.fuses_dbias = false;  // the rows of its subtiles are not adjacent in dx
  return {family, gemm, gemm.workspace_bytes, conv_name(family, gemm.name)};
}

// ---------------------------------------------------------------------------- padded image

/// Padded copies and the implicit product that reads them.
struct CopiedProduct {
  PaddedImage copy;
  GemmProblem gemm;
  bool aligned;  ///< true for fprop, which reads copies only

  CopiedProduct(const ConvProblem &p, bool tensors_are_aligned)
      : copy(padded_image(p)),
        gemm(copy.bytes() > 0 ? implicit_gemm(with_padded_image(p, copy, nullptr)) : GemmProblem{}),
        aligned(tensors_are_aligned || p.op == MP_CONV_FPROP) {}

  double copies_us(const ClassTuning &constants) const {
    return copy.launches() * constants.launch_us + copy.mb() * constants.copy_us_per_mb;
  }

  ConvPlan choice_of(GemmPlan kernel, const ClassTuning &constants) const {
    kernel.reads_copies = true;
    kernel.workspace_bytes += copy.bytes();
    kernel.predicted_us += copies_us(constants);
    return {ConvFamily::implicit, kernel, kernel.workspace_bytes,
            conv_name(ConvFamily::implicit, kernel.name, true)};
  }
};

/// Implements find_conv() for the names "conv_wmma_..._copied".
bool find_copied(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
                 bool aligned, std::string name, ConvPlan *choice, const char **why) {
  const CopiedProduct product(problem, aligned);
  const PatchOperands read = patch_operands(problem);
  const bool is_copied = product.copy.bytes() > 0;
  name.resize(name.size() - kCopied.size());
  GemmPlan found;
  const bool is_found =
      find_gemm_in_place(is_copied ? product.gemm : implicit_gemm(problem), device, tuning,
                         product.aligned, name.c_str() + kPrefix.size(), &found, why, &read);
  if (!is_found && *why == nullptr) return false;
  if (!is_copied)
    *why = "requires fprop or wgrad of a 16-bit x with groups = 1 and unaligned rows of taps";
  if (!is_found || !is_copied) return false;
  *choice = product.choice_of(found, tuning.of(class_of(device)));
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

/// Returns the predicted time: one read or write of both tensors, or the multiply-adds if they take
/// longer.  Multiply-adds are priced with the 64 x 64 CUDA-core GEMM kernel, whose tile has 2^22 of
/// them in 1024 k.  kSlowdown is an estimate, not measured: the GEMM kernel uses each value that it
/// reads eight times, the depthwise kernel does not.
double depthwise_us(const ConvProblem &p, const Device &device, const GemmTuning &tuning,
                    int32_t split_k) {
  constexpr double kTileMultiplyAdds = 1 << 22, kSlowdown = 4, kChannelsPerBlock = 64;
  const auto simt = std::find_if(gemm_kernels().begin(), gemm_kernels().end(),
                                 [](const auto &k) { return k.tile == GemmTile::simt_64x64; });
  const ConvShape &s = p.shape;
  const ClassTuning &constants = tuning.of(class_of(device));
  const double inputs = double(s.n) * s.h * s.w * s.c, outputs = double(s.n) * s.p * s.q * s.c;
  const double elem_mb = elem_bytes(p.dtype) * kMb;
  const double blocks =
      p.op == MP_CONV_WGRAD ? std::ceil(s.c / kChannelsPerBlock) * split_k : device.num_sms;
  const double sms = std::min<double>(blocks, device.num_sms);
  const double work_us = outputs * s.r * s.s / kTileMultiplyAdds * kSlowdown *
                         constants.of(*simt).k_us / std::max(sms, 1.0);
  const double data_us = (inputs + outputs) * elem_mb * constants.dram_us_per_mb;
  const DbiasPass dbias = count_dbias(p.out, plan_dbias(p.out, false, 0, SIZE_MAX), device);
  return ((split_k > 1 ? 2 : 1) + dbias.launches) * constants.launch_us +
         std::max(work_us, data_us) + dbias.mb * constants.dram_us_per_mb;
}

ConvPlan depthwise_choice(const ConvProblem &p, const Device &device, const GemmTuning &tuning,
                          const DepthwiseVariant &variant) {
  const size_t partial_sums = variant.split_k == 1 ? 0 : static_cast<size_t>(variant.split_k);
  const size_t output_bytes =
      sizeof(float) * static_cast<size_t>(p.out.m) * static_cast<size_t>(p.out.n);
  ConvPlan choice{ConvFamily::depthwise, {}, partial_sums * output_bytes, variant.name};
  choice.gemm.split_k = variant.split_k;
  choice.gemm.workspace_bytes = choice.workspace_bytes;
  choice.gemm.predicted_us = depthwise_us(p, device, tuning, variant.split_k);
  return choice;
}

// ---------------------------------------------------------------------------- ranking and lookup

/// Returns the problem without the first property that conv_slow_path_reason() finds, if aligned.
ConvProblem without_slow_path(const ConvProblem &problem, const Device &device, bool aligned) {
  ConvProblem better = problem;
  if (!aligned) return better;
  if (!why_no_tensor_cores(problem.dtype, device).empty()) {
    better.dtype = MP_FP16;
    return better;
  }
  ConvShape &s = better.shape;
  s.c = s.groups * ((group_c(s) + 7) / 8 * 8);
  s.k = s.groups * ((group_k(s) + 7) / 8 * 8);
  const Output whole = output_matrix(s, problem.op);
  better.out.m = whole.m;
  better.out.n = whole.n;
  better.out.c.ld = better.out.d.ld = whole.n;
  return better;
}

/// Families in order of preference at equal times: plain GEMM kernels compute no patch addresses.
constexpr std::array kGemmFamilies = {ConvFamily::gemm, ConvFamily::im2col, ConvFamily::implicit};

}  // namespace

int rank_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
              bool aligned, ConvPlan *choices, int capacity) {
  std::array<ConvPlan, kMaxConvPlans> all;
  size_t count = 0;
  const PatchOperands read = patch_operands(problem);
  for (const ConvFamily family : kGemmFamilies) {
    if (why_not_family(problem, family) != nullptr) continue;
    std::array<GemmPlan, kMaxGemmPlans> gemms;
    const int ranked =
        rank_gemm_of(tiles_for(family, problem), gemm_of(problem, family), device, tuning, aligned,
                     gemms.data(), kMaxGemmPlans, read_by(family, read));
    for (const GemmPlan &gemm : std::span(gemms).first(static_cast<size_t>(ranked)))
      all[count++] = choice_of(problem, family, gemm);
  }
  if (const CopiedProduct product(problem, aligned); product.copy.bytes() > 0) {
    std::array<GemmPlan, kMaxGemmPlans> gemms;
    const int ranked = rank_gemm_of(WmmaTiles::kSet, product.gemm, device, tuning, product.aligned,
                                    gemms.data(), kMaxGemmPlans, &read);
    for (const GemmPlan &gemm : std::span(gemms).first(static_cast<size_t>(ranked)))
      all[count++] = product.choice_of(gemm, tuning.of(class_of(device)));
  }
  for (const DepthwiseVariant &variant : kDepthwise)
    if (why_not_depthwise(problem, variant.split_k) == nullptr)
      all[count++] = depthwise_choice(problem, device, tuning, variant);
  std::stable_sort(all.data(), all.data() + count, [](const ConvPlan &a, const ConvPlan &b) {
    return a.gemm.predicted_us < b.gemm.predicted_us;
  });
  std::copy_n(all.data(), std::min(count, static_cast<size_t>(capacity)), choices);
  return static_cast<int>(count);
}

ConvPlan best_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
                   bool aligned, size_t workspace_bytes) {
  std::array<ConvPlan, kMaxConvPlans> ranked;
  (void)rank_conv(problem, device, tuning, aligned, ranked.data(), kMaxConvPlans);
  ConvPlan best = *first_that_fits(ranked.data(), workspace_bytes);
  best.gemm.best_workspace_bytes = best_workspace_bytes(problem.out, ranked[0].gemm);
  best.gemm.best_us = ranked[0].gemm.predicted_us;
  if (conv_slow_path_reason(problem, device, aligned).empty()) return best;
  (void)rank_conv(without_slow_path(problem, device, aligned), device, tuning, true, ranked.data(),
                  kMaxConvPlans);
  best.gemm.aligned_us = first_that_fits(ranked.data(), workspace_bytes)->gemm.predicted_us;
  return best;
}

bool find_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
               bool aligned, const char *name, ConvPlan *choice, const char **why) {
  if (const std::string_view copied = name;
      copied.starts_with(kCopiedPrefix) && copied.ends_with(kCopied))
    return find_copied(problem, device, tuning, aligned, name, choice, why);
  for (const DepthwiseVariant &variant : kDepthwise) {
    if (std::string_view(name) != variant.name) continue;
    *why = why_not_depthwise(problem, variant.split_k);
    if (*why != nullptr) return false;
    *choice = depthwise_choice(problem, device, tuning, variant);
    return true;
  }
  const ConvFamily family = family_of(name);
  const char *const gemm_name = family == ConvFamily::gemm ? name : name + kPrefix.size();
  GemmPlan found;
  const PatchOperands read = patch_operands(problem);
  const bool is_found = find_gemm_in_place(gemm_of(problem, family), device, tuning, aligned,
                                           gemm_name, &found, why, read_by(family, read));
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
  *choice = choice_of(problem, family, found);
  return true;
}

std::span<const char *const> conv_names(mp_conv_op_t op) {
  const auto &names = lazy_init([] {
    std::array<std::vector<const char *>, 3> all;
    for (const mp_conv_op_t pass : {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD}) {
      for (const ConvFamily family : kGemmFamilies)
        for (const GemmVariant &variant : gemm_variants())
          if (is_one_of(tiles_of(family, pass), *variant.kernel))
            all[pass].push_back(conv_name(family, variant.name));
      for (const GemmVariant &variant : gemm_variants())
        if (pass != MP_CONV_DGRAD && is_one_of(WmmaTiles::kSet, *variant.kernel))
          all[pass].push_back(conv_name(ConvFamily::implicit, variant.name, true));
      for (const DepthwiseVariant &variant : kDepthwise) all[pass].push_back(variant.name);
    }
    return all;
  });
  return names[op];
}

std::string conv_slow_path_reason(const ConvProblem &problem, const Device &device, bool aligned) {
  if (problem.dtype == MP_FP32) return "";
  if (!aligned) return "a tensor is not 16-byte aligned";
  const auto reason = [](const char *name, int32_t value) {
    return std::string(name) + " = " + std::to_string(value) + " is not a multiple of 8";
  };
  if (why_not_depthwise(problem, 1) == nullptr) return "";
  if (const std::string why = why_no_tensor_cores(problem.dtype, device); !why.empty()) return why;
  const bool runs_are_rows = problem.op != MP_CONV_DGRAD && run_shape(problem).taps_w == 1;
  if (group_c(problem.shape) % 8 != 0 && !runs_are_rows)
    return reason("c / groups", group_c(problem.shape));
  if (group_k(problem.shape) % 8 != 0) return reason("k / groups", group_k(problem.shape));
  return "";
}

}  // namespace mp
