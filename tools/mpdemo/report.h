// Output of the demo: tables, verdict, report.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training.h"

namespace mpdemo {

/// A setting with the results of its runs, in order.
struct Outcome {
  Setting setting;
  std::vector<RunResult> results;
};

/// Result of the check that mixed precision with loss scaling matches FP32.
struct Verdict {
  bool is_judged;  ///< ordinary training of full length only
  bool passed;
  std::string sentence;
};

/// All results of one network.
struct Experiment {
  const Architecture &architecture;
  std::vector<Outcome> outcomes;  ///< the first one is ordinary training
  Verdict verdict;
};

/// Data common to all experiments.
struct Circumstances {
  std::string data;  ///< training data
  mp_device_info_t device;
  uint64_t seed;
  int ranks;
};

/// Checks that each judged run reaches the required metric and stays within the metric's gap to
/// FP32.
Verdict judge(const Architecture &architecture, const Outcome &standard);

/// True if a run uses fp16: gradients of other types do not round to 0.
bool has_fp16(const Outcome &outcome);
/// Gradients of the FP32 run; the table shows the fraction that fp16 would round to zero.
const Gradients &fp32_gradients(const Outcome &outcome);
/// The final loss scale; 1 without a scaler.
double final_scale(const RunResult &result);

/// Text for readers: introduction, a table for each setting as soon as it has ended, and the rest
/// of an experiment with the verdict.
std::string heading(const Circumstances &circumstances, const Architecture &architecture);
std::string outcome_table(const Metric &metric, const Outcome &outcome);
std::string report_behind_tables(const Circumstances &circumstances, const Experiment &experiment);
/// JSON of all experiments, with additional details.
std::string json_report(const Circumstances &circumstances,
                        const std::vector<Experiment> &experiments);

}  // namespace mpdemo
