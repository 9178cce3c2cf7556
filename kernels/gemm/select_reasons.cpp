// Why a choice takes longer than it could, in the words of the log.
#include <algorithm>
#include <cstdio>
#include <string>

#include "kernels/gemm/aligned_copies.h"
#include "kernels/gemm/predict_exit.h"
#include "kernels/gemm/tuning.h"

namespace mp {

namespace {

constexpr double kMatters = 1.2;

double dbias_us(const Output &out, const GemmChoice &choice, const Device &device,
                const ClassTuning &tuning, size_t workspace_bytes) {
  const DbiasPass pass = count_dbias(out, plan_dbias(out, choice, workspace_bytes), device);
  return pass.launches * tuning.launch_us + pass.mb * tuning.dram_us_per_mb;
}

/// The first thing that is not as aligned_for_strips has it.
std::string why_no_strips(const Output &out) {
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

bool copies_are_cheap(const GemmChoice &choice, double copies_us) {
  return choice.predicted_us < kMatters * (choice.predicted_us - copies_us);
}

bool copies_are_cheap(const GemmProblem &problem, const GemmChoice &choice, const Device &device,
                      const GemmTuning &tuning) {
  if (!choice.reads_copies) return false;
  const ClassTuning &of_class = tuning.of(class_of(device));
  const AlignedCopies copies = aligned_copies(problem);
  const double us = copies.launches() * of_class.launch_us + copies.mb() * of_class.copy_us_per_mb;
  return copies_are_cheap(choice, us);
}

std::string lost_time_reason(const Output &out, const GemmChoice &choice, const Device &device,
                             const GemmTuning &tuning, size_t workspace_bytes) {
  if (choice.mapped_us > 0 && choice.predicted_us >= kMatters * choice.mapped_us)
    return why_no_strips(out);
  // Predictions have the best dbias in them.
  if (choice.wanted_us == 0 || workspace_bytes >= choice.wanted_bytes) return "";
  const ClassTuning &of_class = tuning.of(class_of(device));
  const double us = choice.predicted_us + dbias_us(out, choice, device, of_class, workspace_bytes) -
                    dbias_us(out, choice, device, of_class, SIZE_MAX);
  if (us < kMatters * choice.wanted_us) return "";
  char text[160];
  std::snprintf(text, sizeof text,
                "workspace_bytes = %zu is predicted to take %.3g us, and %zu bytes %.3g us",
                workspace_bytes, us, choice.wanted_bytes, choice.wanted_us);
  return text;
}

}  // namespace mp
