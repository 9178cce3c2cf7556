#include "kernels/gemm/select_reasons.h"

#include <cstdio>

#include "kernels/gemm/cost.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tuning.h"

namespace mp {

namespace {

constexpr double kMatters = 1.2;

double dbias_us(const OutputShape &out, const DbiasPlan &plan, const Device &device,
                const ClassTuning &tuning) {
  const DbiasPass pass = count_dbias(out, plan, device);
  return pass.launches * tuning.launch_us + pass.mb * tuning.dram_us_per_mb;
}

/// Returns the first property that aligned_for_tma_store would change.
std::string why_no_tma_store(const OutputShape &out) {
  const EpilogueShape &e = out.epilogue;
  const struct {
    const char *name;
    int64_t value;
  } lengths[] = {{"ld_d", out.d.ld},
                 {"stride_d", out.d.stride},
                 {"ld_c", out.c.ld},
                 {"stride_c", out.c.stride},
                 {"ld_aux", e.aux.ld}};
  for (const auto &length : lengths)
    if (length.value % 8 != 0)
      return std::string(length.name) + " = " + std::to_string(length.value) +
             " is not a multiple of 8";
  return "C, D or aux is not 16-byte aligned";
}

}  // namespace

std::string why_no_tensor_cores(mp_dtype_t dtype, const Device &device) {
  if (dtype != MP_BF16 || device.arch >= 80) return "";
  return "sm_" + std::to_string(device.arch) + " has Tensor Cores for FP16, but not for BF16";
}

std::string slow_path_reason(const GemmShape &shape, const Device &device) {
  if (shape.dtype_ab == MP_FP32) return "";
  if (const std::string why = why_no_tensor_cores(shape.dtype_ab, device); !why.empty()) return why;
  if (!is_aligned(shape)) return "A or B is not 16-byte aligned";
  const struct {
    const char *name;
    int64_t value;
  } lengths[] = {{"ld_a", shape.a.ld},
                 {"ld_b", shape.b.ld},
                 {"stride_a", shape.a.stride},
                 {"stride_b", shape.b.stride}};
  for (const auto &length : lengths)
    if (length.value % 8 != 0)
      return std::string(length.name) + " = " + std::to_string(length.value) +
             " is not a multiple of 8";
  return "";
}

GemmShape without_slow_path(const GemmShape &shape, const Device &device) {
  GemmShape better = shape;
  if (!why_no_tensor_cores(shape.dtype_ab, device).empty()) better.dtype_ab = MP_FP16;
  for (MatrixLayout *const x : {&better.a, &better.b})
    *x = {.ld = round_up(x->ld, 8), .stride = round_up(x->stride, 8)};
  return better;
}

std::string if_slower(const std::string &reason, double us, double faster_us) {
  if (reason.empty() || faster_us == 0 || us < kMatters * faster_us) return "";
  char times[64];
  std::snprintf(times, sizeof times, " (%.3g us predicted, %.3g us otherwise)", us, faster_us);
  return reason + times;
}

std::string lost_time_reason(const OutputShape &out, const GemmPlan &plan,
                             const PlanRequest &request) {
  if (plan.mapped_us > 0 && plan.predicted_us >= kMatters * plan.mapped_us)
    return if_slower(why_no_tma_store(out), plan.predicted_us, plan.mapped_us);
  if (plan.best_us == 0 || request.workspace_bytes >= plan.best_workspace_bytes) return "";
  double us = plan.predicted_us;
  if (plan.dbias) {  // predictions contain the fastest dbias
    const ClassTuning &tuning = request.tuning.of(class_of(request.device));
    const DbiasPlan best = plan_dbias(out, plan.can_fuse_dbias, plan.workspace.bytes, SIZE_MAX);
    us += dbias_us(out, *plan.dbias, request.device, tuning) -
          dbias_us(out, best, request.device, tuning);
  }
  if (us < kMatters * plan.best_us) return "";
  char text[160];
  std::snprintf(text, sizeof text,
                "predicted time is %.3g us with workspace_bytes = %zu, but %.3g us with %zu bytes",
                us, request.workspace_bytes, plan.best_us, plan.best_workspace_bytes);
  return text;
}

}  // namespace mp
