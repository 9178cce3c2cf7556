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
  bool is_judged;  ///< only ordinary training of full length is
  bool passed;
  std::string sentence;
};

/// Everything about one network.
struct Experiment {
  const Architecture &architecture;
  std::vector<Outcome> outcomes;  ///< the first is ordinary training
  Verdict verdict;
};

/// What all experiments have in common.
struct Circumstances {
  std::string data;  ///< what the networks have learned from
  mp_device_info_t device;
  uint64_t seed;
  int ranks;
};

/// Every run that is judged must reach what is due and stay as close to FP32 as the metric says.
Verdict judge(const Architecture &architecture, const Outcome &standard);

/// Whether a run is in fp16: gradients of the other types do not round to 0.
bool has_fp16(const Outcome &outcome);
/// The gradients of the FP32 run: the table says of them which share fp16 would make zero.
const Gradients &fp32_gradients(const Outcome &outcome);
/// The final loss scale; 1 without a scaler.
double final_scale(const RunResult &result);

/// For people: what is trained where; a table for each setting, as soon as it has ended; and the rest of an
/// experiment, which ends with the verdict.
std::string heading(const Circumstances &circumstances, const Architecture &architecture);
std::string outcome_table(const Metric &metric, const Outcome &outcome);
std::string report_behind_tables(const Circumstances &circumstances, const Experiment &experiment);
/// The same of all experiments and a little more, for programs.
std::string json_report(const Circumstances &circumstances,
                        const std::vector<Experiment> &experiments);

}  // namespace mpdemo
