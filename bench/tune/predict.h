// Kernel selection and predicted times for a class of devices, from the built-in table, without
// measurement or device.
#pragma once

#include <string>
#include <vector>

#include "kernels/gemm/tuning.h"
#include "options.h"

namespace mptune {

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
