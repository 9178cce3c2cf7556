// What the library would choose on a kind of device that need not be there, and how long it expects
// that to take: by the built-in table, nothing is measured.
#pragma once

#include <string>
#include <vector>

#include "kernels/gemm/tuning.h"
#include "options.h"

namespace mptune {

/// A device of the class as the built-in table assumes it; of "host", this machine.
/// @throws mptools::UsageError where the class is not one of sm_75, sm_80, sm_90, host.
mp::Device typical_device(const std::string &device_class);

struct Prediction {
  std::string suite, set, shape;
  double flop, min_bytes;  ///< every operand once
  std::string kernel;
  double us;
};

/// Of the bench's GEMMs, recurrent layers and convolutions in the set, or of all ("grid").
std::vector<Prediction> predictions(const Options &options, const mp::Device &device);

std::string predictions_text(const std::vector<Prediction> &predictions, const mp::Device &device);
std::string predictions_json(const std::vector<Prediction> &predictions, const mp::Device &device);

}  // namespace mptune
