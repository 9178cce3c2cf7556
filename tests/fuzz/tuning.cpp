// Random text as MP_GEMM_TUNING table: it is rejected with a reason, or selects slower but correct
// kernels.
#include <cmath>
#include <string>
#include <vector>

#include "kernels/gemm/plan_text.h"
#include "kernels/gemm/select.h"
#include "kernels/gemm/tuning.h"
#include "tests/fuzz/found.h"
#include "tests/select/select_cases.h"

namespace fuzz {
namespace {

/// Every problem must have a kernel for any predicted times.
void check_choices(const mp::GemmTuning &tuning) {
  using namespace mptest;
  for (const mp::Device &device : {kH200, kHost})
    for (const mp::GemmProblem &p :
         {problem(512, 512, 512), problem(1, 4096, 4096), with_batch(problem(7, 5, 3), 100)}) {
      const std::vector<mp::RankedGemm> ranked = ranking(p, device, kAligned, tuning);
      if (ranked.empty()) found("rank_gemm", "no plan");
      for (const mp::RankedGemm &entry : ranked)
        if (!std::isfinite(entry.predicted_us) || entry.predicted_us < 0)
          found("rank_gemm", entry.name);
      plan_of(p, device, tuning, !kAligned, 0);
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
