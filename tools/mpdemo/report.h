// What the demo tells: the tables, the verdict, report.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training.h"

namespace mpdemo {

/// A setting with the results of its runs, in their order.
struct Outcome {
  Setting setting;
  std::vector<RunResult> results;
};

/// Whether mixed precision with loss scaling is as good as FP32.
struct Verdict {
  bool is_judged;  ///< only the standard setting at its standard length is
  bool passed;
  std::string sentence;
};

/// What all outcomes have in common.
struct Circumstances {
  mp_device_info_t device;
  uint64_t seed;
};

/// Mixed precision with a dynamic scaler must reach 86 % and stay within half a point of FP32.
Verdict judge(const Outcome &standard);

/// The gradients of the FP32 run: the table says of them which share fp16 would make zero.
const Gradients &fp32_gradients(const Outcome &outcome);
/// The final loss scale; 1 without a scaler.
double final_scale(const RunResult &result);

std::string heading(const Circumstances &circumstances);
std::string table(const Outcome &outcome);
/// Says below the tables what their last columns are.
inline constexpr const char *kTableNote =
    "rounded to 0: share of nonzero weight gradients dW and activation gradients dz that fp16\n"
    "makes 0 when multiplied by the final scale; |S g| <= 2^-25, computed from the gradients of\n"
    "one batch after the FP32 run.  The FP32 run needs no scale.\n";
std::string memory_table(const Outcome &outcome);
std::string json_report(const Circumstances &circumstances, const std::vector<Outcome> &outcomes,
                        const Verdict &verdict);

}  // namespace mpdemo
