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
#include "kernels/simt/tensor_map.h"

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
const char *conv_name(ConvFamily family, const char *gemm_name, bool reads_copies) {
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
  const StridePhases h = stride_phases(axis_h(s)), w = stride_phases(axis_w(s));
  const int64_t phases = int64_t{h.reached} * w.reached;
  const int64_t all = k / (int64_t{h.max_taps} * w.max_taps) * s.r * s.s;
  return (all + phases - 1) / phases;
}

/// Returns the number of products of dgrad without taps.
int64_t empty_products(const ConvShape &s) {
  const StridePhases h = stride_phases(axis_h(s)), w = stride_phases(axis_w(s));
  return s.groups * (int64_t{h.count} * w.count - int64_t{h.reached} * w.reached);
}

/// Returns the product of the kernels of a family, or a GEMM that takes as long.
GemmShape gemm_of(const ConvProblem &p, ConvFamily family) {
  if (family == ConvFamily::gemm) return shape_of(pointwise_gemm(p));
  const bool is_im2col = family == ConvFamily::im2col;
  GemmShape gemm = is_im2col ? shape_of(im2col_gemm(p)) : implicit_gemm(p);
  if (is_im2col) gemm.a.alignment = gemm.b.alignment = is_aligned(p) ? 16 : 1;
  if (p.op == MP_CONV_DGRAD) gemm.k = mean_phase_k(p.shape, gemm.k);
  return gemm;
}

/// Strided dgrad: 16-bit dx is stored by stride phases.  The epilogue may read one source.
StorePath strided_dgrad_store(const ConvProblem &p) {
  const OutputShape out = shape_of(p.out);
  const EpilogueSource source = epilogue_source(out);
  if (out.dtype == MP_FP32 || out.d.alignment < 16) return StorePath::staged;
  if (source == EpilogueSource::c || source == EpilogueSource::aux_read) {
    const MatrixLayout &source_layout = source == EpilogueSource::c ? out.c : out.epilogue.aux;
    if (source_layout.alignment < 16 ||
        why_no_tensor_layout(phase_source_spec(p.out, p.shape)) != nullptr)
      return StorePath::staged;
  } else if (source != EpilogueSource::none) {
    return StorePath::staged;
  }
  const int32_t rows = stride_phases(axis_h(p.shape)).count;
  const int32_t columns = stride_phases(axis_w(p.shape)).count;
  if (rows * columns > kMaxStoredPhases) return StorePath::staged;
  for (int32_t i = 0; i < rows * columns; i++)
    if (why_no_tensor_layout(phase_spec(p.out, p.shape, i / columns, i % columns)) != nullptr)
      return StorePath::staged;
  return StorePath::tma;
}

/// Returns the store path of an im2col kernel without a split, for a problem that satisfies
/// why_no_im2col.
StorePath im2col_store(const ConvProblem &p) {
  if (is_strided_dgrad(p)) return strided_dgrad_store(p);
  const OutputShape out = shape_of(im2col_gemm(p).out);
  // TMA stores a filter by taps; no map describes C by taps.
  if (p.op == MP_CONV_WGRAD && out.reads_c) return store_path_with(out, false);
  return wgmma_store_path(out);
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
  return {.memory_mb = read * float_type(p.dtype).bytes * kMb,
          .is_wgrad = p.op == MP_CONV_WGRAD,
          .has_stride_phases = is_strided_dgrad(p),
          .empty_items = p.op == MP_CONV_DGRAD ? empty_products(s) : 0,
          .store = family == ConvFamily::im2col && why_no_im2col(p) == nullptr ? im2col_store(p)
                                                                               : StorePath::staged};
}

bool is_one_of(GemmTiles tiles, const GemmKernel &kernel) {
  return (tiles & gemm_tiles(kernel.tile)) != 0;
}

/// Completes a plan with dbias, which reads the output as it is written.
ConvPlan with_dbias(ConvPlan plan, const ConvProblem &p, const PlanRequest &request) {
  if (p.out.epilogue.dbias != nullptr)
    plan.gemm.dbias = plan_dbias(shape_of(p.out), plan.gemm.can_fuse_dbias,
                                 plan.gemm.workspace.bytes, request.workspace_bytes);
  return plan;
}

// ---------------------------------------------------------------------------- forms

/// A family of kernels that read the tensors, or copies of the image and the filter.
struct FormKind {
  ConvFamily family;
  bool reads_copies;
};
/// Kinds in order of preference in a tie: GEMM kernels do not compute addresses of patches.
constexpr FormKind kForms[] = {{ConvFamily::gemm, false},
                               {ConvFamily::im2col, false},
                               {ConvFamily::implicit, false},
                               {ConvFamily::im2col, true},
                               {ConvFamily::implicit, true}};

/// Returns the tiles of a pass: tiles with few rows for wgrad, whose rows are the K channels,
/// narrow ones for the others, whose columns are channels.
GemmTiles tiles_of(const FormKind &kind, mp_conv_op_t op) {
  const bool is_wgrad = op == MP_CONV_WGRAD;
  if (kind.family == ConvFamily::gemm) return kAllGemmTiles;
  if (kind.reads_copies && op == MP_CONV_DGRAD) return 0;
  if (kind.family == ConvFamily::im2col)
    return is_wgrad ? WgradWgmmaTiles::kSet : FpropDgradWgmmaTiles::kSet;
  if (kind.reads_copies) return WmmaTiles::kSet;
  return WmmaTiles::kSet | (is_wgrad ? WgradSimtTiles::kSet : FpropDgradSimtTiles::kSet);
}

/// A convolution as the product that kernels of one kind compute, or as a GEMM that takes as long.
struct ConvForm : FormKind {
  ConvForm(const ConvProblem &p, const Device &device, const FormKind &kind)
      : FormKind(kind), tiles(tiles_of(kind, p.op)) {
    if (reads_copies) copy = family == ConvFamily::im2col ? window_image(p) : padded_image(p);
    why_not = find_why_not(p, device);
    const ConvProblem read = copy.bytes() > 0 ? with_padded_image(p, copy) : p;
    gemm = gemm_of(read, family);
    // Windows are read through L2 from the copy, which is larger than x.
    traits = conv_traits(copy.has_windows() ? read : p, family);
    // Strided dgrad has its own kernel.
    if (family == ConvFamily::im2col && is_strided_dgrad(p)) tiles &= StridedDgradWgmmaTiles::kSet;
  }

  /// Returns NULL for the family gemm, whose kernels read matrices.
  const ConvTraits *conv() const { return family == ConvFamily::gemm ? nullptr : &traits; }

  double copies_us(const PlanRequest &request) const {
    const ClassTuning &constants = request.tuning.of(class_of(request.device));
    return copy.launches() * constants.launch_us + copy.mb() * constants.copy_us_per_mb;
  }

  /// Completes the plan of its GEMM.
  ConvPlan plan(GemmPlan of_gemm, const ConvProblem &p, const PlanRequest &request) const {
    of_gemm.workspace.partial_sums += copy.bytes();
    of_gemm.workspace.bytes += copy.bytes();
    of_gemm.predicted_us += copies_us(request);
    const char *const name = conv_name(family, of_gemm.name, reads_copies);
    return with_dbias({family, name, of_gemm, copy}, p, request);
  }

  GemmTiles tiles;
  PaddedImage copy{};
  const char *why_not;  ///< NULL if kernels can run the problem, else the reason
  GemmShape gemm;
  ConvTraits traits;

 private:
  const char *find_why_not(const ConvProblem &p, const Device &device) const {
    const bool is_im2col = family == ConvFamily::im2col;
    if (family == ConvFamily::gemm && !is_pointwise(p.shape))
      return "requires a 1 x 1 filter with stride 1, no padding and groups = 1";
    if (!reads_copies) return is_im2col ? why_no_im2col(p) : nullptr;
    if (copy.bytes() == 0 && is_im2col)
      return "requires fprop or wgrad of a 16-bit x with c of at most 8, k a multiple of 8, "
             "groups = 1, dilation_w = 1, and sizes within the limits of im2col TMA";
    if (copy.bytes() == 0)
      return "requires fprop or wgrad of a 16-bit x with groups = 1 and unaligned rows of taps";
    return is_im2col && device.has_wgmma && !device.has_overlapping_maps
               ? "requires a driver that encodes tensor maps with overlapping pixels"
               : nullptr;
  }
};

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
  const ConvShape &s = p.shape;
  const Device &device = request.device;
  const ClassTuning &constants = request.tuning.of(class_of(device));
  const double inputs = double(s.n) * s.h * s.w * s.c, outputs = double(s.n) * s.p * s.q * s.c;
  const double elem_mb = float_type(p.dtype).bytes * kMb;
  const double blocks =
      p.op == MP_CONV_WGRAD ? std::ceil(s.c / kChannelsPerBlock) * split_k : device.num_sms;
  const double sms = std::min<double>(blocks, device.num_sms);
  const double work_us = outputs * s.r * s.s / kTileMultiplyAdds * kSlowdown *
                         constants.of(kernel_of(GemmTile::simt_64x64x16)).k_us / std::max(sms, 1.0);
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
  return with_dbias({ConvFamily::depthwise, variant.name, gemm, {}}, p, request);
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

/// All forms of a problem, each made once, and the ranking of their kernels.
struct Selection {
  Selection(const ConvProblem &problem, const PlanRequest &request)
      : problem(problem), request(request) {
    for (const FormKind &kind : kForms) {
      const ConvForm &form = forms.emplace_back(problem, request.device, kind);
      if (form.why_not != nullptr) continue;
      for (const RankedGemm &gemm : rank_in_place(form.tiles, form.gemm, request, form.conv()))
        ranked.push_back({kind.family, gemm.variant, gemm.variant->split_k, kind.reads_copies,
                          gemm.predicted_us + form.copies_us(request),
                          gemm.workspace_bytes + form.copy.bytes(),
                          conv_name(kind.family, gemm.name, kind.reads_copies)});
    }
    for (const DepthwiseVariant &variant : kDepthwise)
      if (why_not_depthwise(problem, variant.split_k) == nullptr)
        ranked.push_back({ConvFamily::depthwise, nullptr, variant.split_k, false,
                          depthwise_us(problem, request, variant.split_k),
                          depthwise_bytes(problem, variant.split_k), variant.name});
    std::ranges::stable_sort(ranked, {}, &RankedConv::predicted_us);
  }

  ConvPlan plan(const RankedConv &entry) const {
    if (entry.variant == nullptr)
      return plan_depthwise(problem, request, {entry.name, entry.split_k});
    const ConvForm &form = *std::ranges::find_if(forms, [&](const ConvForm &x) {
      return x.family == entry.family && x.reads_copies == entry.reads_copies;
    });
    return form.plan(plan_variant(*entry.variant, form.gemm, request, form.conv()), problem,
                     request);
  }

  const ConvProblem &problem;
  const PlanRequest &request;
  std::vector<ConvForm> forms;
  std::vector<RankedConv> ranked;
};

}  // namespace

std::vector<RankedConv> rank_conv(const ConvProblem &problem, const PlanRequest &request) {
  return Selection(problem, request).ranked;
}

std::vector<ConvPlan> fastest_conv_plans(const ConvProblem &problem, const PlanRequest &request,
                                         int32_t max_count) {
  const Selection selection(problem, request);
  return first_plans(selection.ranked, request.workspace_bytes, max_count,
                     [&](const RankedConv &entry) { return selection.plan(entry); });
}

ConvPlan plan_conv(const ConvProblem &problem, const PlanRequest &request, const char *measured) {
  const Selection selection(problem, request);
  const RankedConv &first = selection.ranked[0],
                   &fits = first_that_fits(selection.ranked, request.workspace_bytes);
  const auto found = std::ranges::find_if(selection.ranked, [&](const RankedConv &entry) {
    return measured != nullptr && entry.workspace_bytes <= request.workspace_bytes &&
           std::string_view(measured) == entry.name;
  });
  const RankedConv &chosen = found != selection.ranked.end() ? *found : fits;
  ConvPlan best = selection.plan(chosen);
  best.gemm.best_workspace_bytes = best_workspace_bytes(
      shape_of(problem.out), &chosen == &first ? best.gemm : selection.plan(first).gemm);
  best.gemm.predicted_us = std::min(best.gemm.predicted_us, fits.predicted_us);
  best.gemm.best_us = first.predicted_us;
  if (conv_slow_path_reason(problem, request.device).empty()) return best;
  const std::vector<RankedConv> better =
      rank_conv(without_slow_path(problem, request.device), request);
  best.gemm.aligned_us = first_that_fits(better, request.workspace_bytes).predicted_us;
  return best;
}

bool plan_named_conv(const ConvProblem &problem, const PlanRequest &request, const char *name,
                     ConvPlan *plan, const char **why) {
  for (const DepthwiseVariant &variant : kDepthwise) {
    if (std::string_view(name) != variant.name) continue;
    *why = why_not_depthwise(problem, variant.split_k);
    if (*why != nullptr) return false;
    *plan = plan_depthwise(problem, request, variant);
    return true;
  }
  std::string gemm_name = name;
  const ConvFamily family = family_of(name);
  const bool reads_copies = gemm_name.ends_with(kCopied) && (gemm_name.starts_with(kIm2colPrefix) ||
                                                             gemm_name.starts_with(kWmmaPrefix));
  if (reads_copies) gemm_name.resize(gemm_name.size() - kCopied.size());
  if (family != ConvFamily::gemm) gemm_name.erase(0, kPrefix.size());
  const ConvForm form(problem, request.device, {family, reads_copies});
  GemmPlan found;
  const bool is_found =
      plan_named_in_place(form.gemm, request, gemm_name.c_str(), &found, why, form.conv());
  if (!is_found && *why == nullptr) return false;
  if (form.why_not != nullptr)
    *why = form.why_not;
  else if (is_found && !is_one_of(form.tiles, *found.kernel))
    *why = "does not support this pass";
  if (*why != nullptr) return false;
  *plan = form.plan(found, problem, request);
  return true;
}

std::span<const char *const> conv_names(mp_conv_op_t op) {
  const auto &names = lazy_init([] {
    std::array<std::vector<const char *>, MP_CONV_WGRAD + 1> all;
    for (const mp_conv_op_t pass : {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD}) {
      for (const FormKind &kind : kForms)
        for (const GemmVariant &variant : gemm_variants())
          if (is_one_of(tiles_of(kind, pass), *variant.kernel))
            all[pass].push_back(conv_name(kind.family, variant.name, kind.reads_copies));
      for (const DepthwiseVariant &variant : kDepthwise) all[pass].push_back(variant.name);
    }
    return all;
  });
  return names[op];
}

std::string conv_slow_path_reason(const ConvProblem &problem, const Device &device) {
  if (!is_half(problem.dtype)) return "";
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
