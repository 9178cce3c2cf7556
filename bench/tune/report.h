// Reports of mptune: accuracy of a table, the table, and all measurements as JSON.
#pragma once

#include <string>
#include <vector>

#include "measure.h"
#include "options.h"

namespace mptune {

/// Accuracy of predictions.
struct Accuracy {
  double median_error,
      worst_tenth_error;            ///< |predicted / measured - 1|; worst_tenth: 90th percentile
  size_t problems, fastest_chosen;  ///< problems whose first choice was the fastest
  double mean_loss, worst_loss;     ///< time of the first choice / of the fastest - 1
};

Accuracy accuracy_of(const std::vector<Measured> &measured, const mp::ClassTuning &tuning);

struct Outcome {
  const Options &options;
  const Origin &origin;
  const std::vector<Measured> &measured;
  const mp::ClassTuning &before, &after;
};

/// Report for readers.
std::string text_report(const Outcome &outcome);
/// File for MP_GEMM_TUNING.
std::string table_text(const Outcome &outcome);
std::string json_report(const Outcome &outcome);

}  // namespace mptune
