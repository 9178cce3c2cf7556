// What mptune says: how well a table predicts, the table itself, and all measurements as JSON.
#pragma once

#include <string>
#include <vector>

#include "measure.h"
#include "options.h"

namespace mptune {

/// How good predictions are.
struct Accuracy {
  double median_error,
      worst_tenth_error;            ///< |predicted / measured - 1|; 90 % are below the second
  size_t problems, fastest_chosen;  ///< the first choice was the fastest
  double mean_loss, worst_loss;     ///< time of the first choice / of the fastest - 1
};

Accuracy accuracy_of(const std::vector<Measured> &measured, const mp::ClassTuning &tuning);

struct Outcome {
  const Options &options;
  const Origin &origin;
  const std::vector<Measured> &measured;
  const mp::ClassTuning &before, &after;
};

/// For people.
std::string text_report(const Outcome &outcome);
/// The file that MP_GEMM_TUNING may name.
std::string table_text(const Outcome &outcome);
std::string json_report(const Outcome &outcome);

}  // namespace mptune
