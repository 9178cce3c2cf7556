// Any text as the table that MP_GEMM_TUNING names: it is refused with a reason, or it makes kernels slow, not wrong.
#include <array>
#include <cmath>
#include <string>

#include "kernels/gemm/select.h"
#include "kernels/gemm/tuning.h"
#include "kernels/gemm/tuning_text.h"
#include "tests/fuzz/found.h"
#include "tests/select/select_cases.h"

namespace fuzz {
namespace {

/// Every problem has a kernel, whatever is predicted of it.
void check_choices(const mp::GemmTuning &tuning) {
  using namespace mptest;
  for (const mp::Device &device : {h200(), host_device()})
    for (const mp::GemmProblem &p :
         {problem(512, 512, 512), problem(1, 4096, 4096), with_batch(problem(7, 5, 3), 100)}) {
      std::array<mp::GemmPlan, mp::kMaxGemmPlans> choices;
      const int count =
          mp::rank_gemm(p, device, tuning, kAligned, choices.data(), mp::kMaxGemmPlans);
      if (count < 1 || count > mp::kMaxGemmPlans) found("rank_gemm", "no choice");
      for (int i = 0; i < count; ++i)
        if (!std::isfinite(choices[i].predicted_us) || choices[i].predicted_us < 0)
          found("rank_gemm", choices[i].name);
      mp::plan_gemm(p, device, tuning, !kAligned, 0);
    }
}

}  // namespace
}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  std::string why;
  const auto tuning = mp::parse_gemm_tuning({reinterpret_cast<const char *>(bytes), size}, &why);
  if ((tuning != nullptr) != why.empty()) fuzz::found("parse_gemm_tuning", why.c_str());
  if (tuning != nullptr) fuzz::check_choices(*tuning);
  return 0;
}
