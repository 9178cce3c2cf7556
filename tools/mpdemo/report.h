// Output of the demo: tables, verdict, report.json, pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
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
  bool is_judged;  ///< training of full length only
  bool passed;
  std::string sentence;
};

/// All results of one network.
struct Experiment {
  Architecture architecture;
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

/// Checks that each judged run of ordinary training reaches the required metric and stays within
/// the metric's gap to FP32, and that S = 1 does not with a small task weight.
Verdict judge(const Architecture &architecture, const std::vector<Outcome> &outcomes,
              bool has_default_length);

/// Gradients of other types do not round to 0.
bool is_fp16(const RunResult &result);
/// True if a run uses fp16.
bool has_fp16(const Outcome &outcome);
/// Gradients of the FP32 run; the table shows the fraction that fp16 would round to zero.
const Gradients &fp32_gradients(const Outcome &outcome);
/// The final loss scale; 1 without a scaler.
double final_scale(const RunResult &result);
/// Fraction of the nonzero gradients g that fp16 rounds to zero, |S g| <= 2^-25.  Exact zeros,
/// which relu produces in large numbers, are excluded: no scale could save them.
double flushed_share(std::span<const float> gradients, double loss_scale);

/// Text for readers: introduction, a table for each setting as soon as it has ended, and the rest
/// of an experiment with the verdict.
std::string heading(const Circumstances &circumstances, const Architecture &architecture);
std::string outcome_table(const Metric &metric, const Outcome &outcome);
std::string report_behind_tables(const Circumstances &circumstances, const Experiment &experiment);
/// JSON of all experiments, with additional details.
std::string json_report(const Circumstances &circumstances,
                        const std::vector<Experiment> &experiments);

/// Writes data files and the gnuplot script plots.gp into `directory` and runs gnuplot there.  The
/// pictures of every outcome are a histogram of gradients in the range of fp16, and curves of loss
/// and S.
/// @return one line for the user: the pictures, or the reason why there are none.
std::string write_plots(const std::filesystem::path &directory,
                        const std::vector<Experiment> &experiments);

}  // namespace mpdemo
