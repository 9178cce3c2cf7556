// Reports of mptune: accuracy of a table, the table, all measurements as JSON, and predictions.
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

// Predictions without measurement or device: kernel selection and times for a class of devices,
// from the built-in table.

/// Device of the class as the built-in table assumes it; for "host", this machine.
/// @throws mptools::UsageError if the class is unknown.
mp::Device typical_device(const std::string &device_class);

struct Prediction {
  std::string suite, set, shape;
  double flop, min_bytes;  ///< each operand once
  std::string kernel;
  double us;
};

/// Predictions for the bench's GEMMs, recurrent layers and convolutions of the set, or for all
/// ("grid").
std::vector<Prediction> predictions(const Options &options, const mp::Device &device);

std::string predictions_text(const std::vector<Prediction> &predictions, const mp::Device &device);
std::string predictions_json(const std::vector<Prediction> &predictions, const mp::Device &device);

}  // namespace mptune
