#include "kernels/gemm/select_reasons.h"

#include <algorithm>
#include <cstdio>

#include "kernels/gemm/predict_epilogue.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tuning.h"

namespace mp {

namespace {

constexpr double kMatters = 1.2;

int64_t whole_units(int64_t elems) {
  return (elems + 7) / 8 * 8;
}

double dbias_us(const Output &out, const GemmPlan &choice, const Device &device,
                const ClassTuning &tuning, size_t workspace_bytes) {
  const DbiasPass pass = count_dbias(out, plan_dbias(out, choice, workspace_bytes), device);
  return pass.launches * tuning.launch_us + pass.mb * tuning.dram_us_per_mb;
}

/// Returns the first property that aligned_for_tma_store would change.
std::string why_no_tma_store(const Output &out) {
  const Epilogue &e = out.epilogue;
  const struct {
    const char *name;
    int64_t value;
  } lengths[] = {{"ldd", out.d.ld},
                 {"stride_d", out.d.stride},
                 {"ldc", out.beta != 0.0f ? out.c.ld : 0},
                 {"stride_c", out.beta != 0.0f ? out.c.stride : 0},
                 {"ld_aux", e.aux != nullptr ? e.ld_aux : 0}};
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

std::string slow_path_reason(const GemmProblem &problem, const Device &device, bool aligned) {
  if (problem.dtype_ab == MP_FP32) return "";
  if (const std::string why = why_no_tensor_cores(problem.dtype_ab, device); !why.empty())
    return why;
  if (aligned && has_vector_rows(problem)) return "";
  if (!aligned) return "A or B is not 16-byte aligned";
  const auto reason = [](const char *name, int64_t value) {
    return std::string(name) + " = " + std::to_string(value) + " is not a multiple of 8";
  };
  if (problem.a.ld % 8 != 0) return reason("lda", problem.a.ld);
  if (problem.b.ld % 8 != 0) return reason("ldb", problem.b.ld);
  if (problem.a.stride % 8 != 0) return reason("stride_a", problem.a.stride);
  return reason("stride_b", problem.b.stride);
}

GemmProblem without_slow_path(const GemmProblem &problem, const Device &device) {
  GemmProblem better = problem;
  if (!why_no_tensor_cores(problem.dtype_ab, device).empty()) better.dtype_ab = MP_FP16;
  for (Operand *const x : {&better.a, &better.b}) {
    x->ld = whole_units(x->ld);
    x->stride = whole_units(x->stride);
  }
  return better;
}

std::string if_slower(const std::string &reason, double us, double faster_us) {
  if (reason.empty() || faster_us == 0 || us < kMatters * faster_us) return "";
  char times[64];
  std::snprintf(times, sizeof times, " (%.3g us predicted, %.3g us otherwise)", us, faster_us);
  return reason + times;
}

std::string lost_time_reason(const Output &out, const GemmPlan &choice, const Device &device,
                             const GemmTuning &tuning, size_t workspace_bytes) {
  if (choice.mapped_us > 0 && choice.predicted_us >= kMatters * choice.mapped_us)
    return if_slower(why_no_tma_store(out), choice.predicted_us, choice.mapped_us);
  // Predicted times include the fastest dbias.
  if (choice.best_us == 0 || workspace_bytes >= choice.best_workspace_bytes) return "";
  const ClassTuning &of_class = tuning.of(class_of(device));
  const double us = choice.predicted_us + dbias_us(out, choice, device, of_class, workspace_bytes) -
                    dbias_us(out, choice, device, of_class, SIZE_MAX);
  if (us < kMatters * choice.best_us) return "";
  char text[160];
  std::snprintf(text, sizeof text,
                "predicted time is %.3g us with workspace_bytes = %zu, but %.3g us with %zu bytes",
                us, workspace_bytes, choice.best_us, choice.best_workspace_bytes);
  return text;
}

}  // namespace mp
