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

/// The tables and the verdict, for people.
std::string text_report(const Circumstances &circumstances, const std::vector<Outcome> &outcomes,
                        const Verdict &verdict);
/// The same and a little more, for programs.
std::string json_report(const Circumstances &circumstances, const std::vector<Outcome> &outcomes,
                        const Verdict &verdict);

}  // namespace mpdemo
