// Which kernel runs a convolution: the GEMM that it is, priced as a GEMM.
//
// The kernels are GEMM kernels with other loaders, and the constants of GEMM's predicted times count
// for them too: what mptune measures tunes both.
#include "kernels/conv/select.h"

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kernels/conv/im2col.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tuning.h"

namespace mp {

ProductShape product_shape(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  const RunShape runs = run_shape(p);
  const int64_t taps = int64_t{runs.taps_h} * runs.taps_w * runs.padded();
  const int64_t outputs = int64_t{s.n} * s.p * s.q;
  switch (p.op) {
    case MP_CONV_FPROP:
      return {outputs, group_k(s), taps, s.groups};
    case MP_CONV_WGRAD:
      return {group_k(s), taps, outputs, s.groups};
    case MP_CONV_DGRAD:
      break;
  }
  const DgradDirection h = dgrad_h(s), w = dgrad_w(s);
  return {int64_t{s.n} * h.pixels * w.pixels, group_c(s), int64_t{h.taps} * w.taps * runs.padded(),
          int64_t{s.groups} * h.classes * w.classes};
}

GemmProblem operands_of(const ConvProblem &p) {
  GemmProblem gemm = p.out;
  gemm.dtype_ab = p.dtype;
  gemm.op_a = p.op == MP_CONV_WGRAD ? MP_OP_T : MP_OP_N;
  gemm.op_b = p.op == MP_CONV_FPROP ? MP_OP_T : MP_OP_N;
  gemm.batch_count = 1;
  return gemm;
}

bool is_pointwise(const ConvShape &s) {
  return s.r == 1 && s.s == 1 && s.stride_h == 1 && s.stride_w == 1 && s.p == s.h && s.q == s.w &&
         s.pad_top == 0 && s.pad_left == 0 && s.groups == 1;
}

GemmProblem pointwise_gemm(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  const int64_t pixels = int64_t{s.n} * s.p * s.q;
  const Operand image{p.image, nullptr, p.op == MP_CONV_DGRAD ? s.k : s.c, 0};
  const Operand other{p.other, nullptr, p.op == MP_CONV_WGRAD ? s.k : s.c, 0};
  GemmProblem gemm = operands_of(p);
  gemm.k = p.op == MP_CONV_FPROP ? s.c : p.op == MP_CONV_DGRAD ? s.k : pixels;
  gemm.a = p.op == MP_CONV_WGRAD ? other : image;
  gemm.b = p.op == MP_CONV_WGRAD ? image : other;
  return gemm;
}

namespace {

// ---------------------------------------------------------------------------- by GEMM kernels

constexpr std::string_view kPrefix = "conv_", kIm2colPrefix = "conv_wgmma";

ConvFamily family_of(std::string_view name) {
  if (name.starts_with(kIm2colPrefix)) return ConvFamily::im2col;
  return name.starts_with(kPrefix) ? ConvFamily::implicit : ConvFamily::gemm;
}

/// "conv_" and the name of the GEMM kernel.
const char *conv_name(const GemmChoice &gemm) {
  static const auto names = [] {
    std::unordered_map<const char *, std::string> all;
    for (const GemmVariant &variant : gemm_variants())
      all.emplace(variant.name, std::string(kPrefix) + variant.name);
    return all;
  }();
  return names.at(gemm.name).c_str();
}

bool has_vector_channels(const ConvProblem &p) {
  return group_c(p.shape) % 8 == 0 && group_k(p.shape) % 8 == 0;
}

/// What costs as much as the implicit product.
GemmProblem implicit_gemm(const ConvProblem &p) {
  const ProductShape shape = product_shape(p);
  GemmProblem gemm = operands_of(p);
  gemm.m = shape.m;
  gemm.n = shape.n;
  gemm.k = shape.k;
  gemm.batch_count = shape.count;
  gemm.a.ld = gemm.b.ld = has_vector_channels(p) ? 8 : 1;
  return gemm;
}

/// The GEMM that the kernels of that family multiply, or that takes as long.
GemmProblem gemm_of(const ConvProblem &p, ConvFamily family) {
  if (family == ConvFamily::im2col) return im2col_gemm(p);
  return family == ConvFamily::implicit ? implicit_gemm(p) : pointwise_gemm(p);
}

/// NULL, or why no kernel of that family can run the problem.
const char *why_not_family(const ConvProblem &p, ConvFamily family) {
  if (family == ConvFamily::im2col) return why_no_im2col(p);
  if (family == ConvFamily::implicit || is_pointwise(p.shape)) return nullptr;
  return "needs a 1 x 1 filter with stride 1, no padding and one group";
}

/// The wgmma kernels that are there for a pass: in wgrad, whose rows are the K channels, also low
/// tiles.
bool has_stages(GemmTile tile, mp_conv_op_t op) {
  switch (tile) {
    case GemmTile::wgmma_128x256:
    case GemmTile::wgmma_256x128:
    case GemmTile::wgmma_128x128:
      return true;
    case GemmTile::wgmma_64x256:
    case GemmTile::wgmma_64x128:
      return op == MP_CONV_WGRAD;
    default:
      return false;
  }
}

/// NULL if the kernel is there for that family and pass, else why not.
const char *why_not_kernel(const GemmKernel &kernel, ConvFamily family, mp_conv_op_t op) {
  const bool has_loaders = kernel.family == GemmFamily::wmma || kernel.family == GemmFamily::simt;
  const bool can_read = family == ConvFamily::gemm ||
                        (family == ConvFamily::implicit && has_loaders) ||
                        (family == ConvFamily::im2col && has_stages(kernel.tile, op));
  return can_read ? nullptr : "cannot read patches";
}

/// Partial sums of the whole output, one for each slice.
size_t split_bytes(const ConvProblem &p, int32_t split_k) {
  if (split_k == 1) return 0;
  return sizeof(float) * static_cast<size_t>(split_k) * static_cast<size_t>(p.out.m) *
         static_cast<size_t>(p.out.n);
}

ConvChoice choice_of(const ConvProblem &p, ConvFamily family, const GemmChoice &gemm) {
  if (family == ConvFamily::gemm) return {family, gemm, gemm.workspace_bytes, gemm.name};
  const bool is_implicit = family == ConvFamily::implicit;
  return {family, gemm, is_implicit ? split_bytes(p, gemm.split_k) : gemm.workspace_bytes,
          conv_name(gemm)};
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
  if (s.c == 1 || s.groups != s.c || s.groups != s.k) return "needs one filter for each channel";
  if (int64_t{s.r} * s.s > kMaxDepthwiseTaps) return "needs a filter of at most 128 taps";
  if (split_k == 1) return nullptr;
  if (p.op != MP_CONV_WGRAD) return "splits the sum of wgrad alone";
  constexpr int64_t kMinSliceRows = 32;
  return int64_t{s.n} * s.p * s.q >= split_k * kMinSliceRows ? nullptr
                                                             : "needs more pixels for this split";
}

/// Both tensors are read or written once, unless the multiply-adds take longer: a tile of the small
/// CUDA-core kernel has 2^22 of them, and does four times as many in the time, because there each value
/// that is read is used eight times.
double depthwise_us(const ConvProblem &p, const Device &device, const GemmTuning &tuning,
                    int32_t split_k) {
  constexpr double kTileMultiplyAdds = 1 << 22, kSlowdown = 4, kChannelsPerBlock = 64;
  const auto simt = std::find_if(gemm_kernels().begin(), gemm_kernels().end(),
                                 [](const auto &k) { return k.tile == GemmTile::simt_64x64; });
  const ConvShape &s = p.shape;
  const ClassTuning &constants = tuning.of(class_of(device));
  const double inputs = double(s.n) * s.h * s.w * s.c, outputs = double(s.n) * s.p * s.q * s.c;
  const double elem_mb = (p.dtype == MP_FP32 ? 4 : 2) * 1e-6;
  const double blocks =
      p.op == MP_CONV_WGRAD ? std::ceil(s.c / kChannelsPerBlock) * split_k : device.num_sms;
  const double sms = std::min<double>(blocks, device.num_sms);
  const double work_us = outputs * s.r * s.s / kTileMultiplyAdds * kSlowdown *
                         constants.of(*simt).k_us / std::max(sms, 1.0);
  const double data_us = (inputs + outputs) * elem_mb * constants.dram_us_per_mb;
  return (split_k > 1 ? 2 : 1) * constants.launch_us + std::max(work_us, data_us);
}

ConvChoice depthwise_choice(const ConvProblem &p, const Device &device, const GemmTuning &tuning,
                            const DepthwiseVariant &variant) {
  ConvChoice choice{ConvFamily::depthwise, {}, split_bytes(p, variant.split_k), variant.name};
  choice.gemm.split_k = variant.split_k;
  choice.gemm.predicted_us = depthwise_us(p, device, tuning, variant.split_k);
  return choice;
}

// ---------------------------------------------------------------------------- all

struct Ranking {
  std::array<ConvChoice, kMaxConvChoices> choices;
  int count = 0;
};

Ranking rank_all(const ConvProblem &p, const Device &device, const GemmTuning &tuning,
                 bool aligned) {
  Ranking ranking;
  std::array<GemmChoice, kMaxGemmChoices> gemms;
  const auto push = [&](const ConvChoice &choice) {
    ranking.choices[static_cast<size_t>(ranking.count++)] = choice;
  };
  for (const ConvFamily family : {ConvFamily::gemm, ConvFamily::im2col, ConvFamily::implicit}) {
    if (why_not_family(p, family) != nullptr) continue;
    const int count =
        rank_gemm(gemm_of(p, family), device, tuning, aligned, gemms.data(), kMaxGemmChoices);
    for (int i = 0; i < count; i++) {
      const GemmChoice &gemm = gemms[static_cast<size_t>(i)];
      if (why_not_kernel(*gemm.kernel, family, p.op) == nullptr) push(choice_of(p, family, gemm));
    }
  }
  for (const DepthwiseVariant &variant : kDepthwise)
    if (why_not_depthwise(p, variant.split_k) == nullptr)
      push(depthwise_choice(p, device, tuning, variant));
  // Stable: where both take as long, the GEMM kernel, which does not ask where patches are.
  std::stable_sort(ranking.choices.begin(), ranking.choices.begin() + ranking.count,
                   [](const ConvChoice &a, const ConvChoice &b) {
                     return a.gemm.predicted_us < b.gemm.predicted_us;
                   });
  return ranking;
}

}  // namespace

int rank_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
              bool aligned, ConvChoice *choices, int capacity) {
  const Ranking ranking = rank_all(problem, device, tuning, aligned);
  std::copy_n(ranking.choices.begin(), std::min(ranking.count, capacity), choices);
  return ranking.count;
}

ConvChoice best_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
                     bool aligned, size_t workspace_bytes) {
  const Ranking ranking = rank_all(problem, device, tuning, aligned);
  return *std::find_if(
      ranking.choices.begin(), ranking.choices.begin() + ranking.count,
      [&](const ConvChoice &choice) { return choice.workspace_bytes <= workspace_bytes; });
}

bool find_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
               bool aligned, const char *name, ConvChoice *choice, const char **why) {
  for (const DepthwiseVariant &variant : kDepthwise) {
    if (std::string_view(name) != variant.name) continue;
    *why = why_not_depthwise(problem, variant.split_k);
    if (*why != nullptr) return false;
    *choice = depthwise_choice(problem, device, tuning, variant);
    return true;
  }
  const ConvFamily family = family_of(name);
  const char *const gemm_name = family == ConvFamily::gemm ? name : name + kPrefix.size();
  GemmChoice found;
  const bool is_found =
      find_gemm(gemm_of(problem, family), device, tuning, aligned, gemm_name, &found, why);
  if (!is_found && *why == nullptr) return false;
  if (const char *const why_not = why_not_family(problem, family)) {
    *why = why_not;
    return false;
  }
  if (!is_found) return false;
  *why = why_not_kernel(*found.kernel, family, problem.op);
  if (*why != nullptr) return false;
  *choice = choice_of(problem, family, found);
  return true;
}

std::string conv_slow_path_reason(const ConvProblem &problem, bool aligned) {
  if (problem.dtype == MP_FP32) return "";
  if (!aligned) return "a tensor is not 16-byte aligned";
  const auto reason = [](const char *name, int32_t value) {
    return std::string(name) + " = " + std::to_string(value) + " is not a multiple of 8";
  };
  if (why_not_depthwise(problem, 1) == nullptr) return "";
  const bool runs_are_rows = problem.op != MP_CONV_DGRAD && run_shape(problem).taps_w == 1;
  if (group_c(problem.shape) % 8 != 0 && !runs_are_rows)
    return reason("c / groups", group_c(problem.shape));
  if (group_k(problem.shape) % 8 != 0) return reason("k / groups", group_k(problem.shape));
  return "";
}

}  // namespace mp
