// From measured times to the constants of kernels/gemm/tuning.h.
#pragma once

#include <vector>

#include "kernels/gemm/cost.h"

namespace mptune {

struct Sample {
  const mp::GemmKernel *kernel;
  mp::PlanCost cost;
  double us;  ///< measured
};

inline double predicted(const Sample &sample, const mp::ClassTuning &tuning) {
  return mp::predicted_us(sample.cost, tuning, tuning.of(*sample.kernel));
}

/// predicted / measured - 1.
inline double relative_error(const Sample &sample, const mp::ClassTuning &tuning) {
  return predicted(sample, tuning) / sample.us - 1;
}

/// Middle of the values, which need no order.
double median(std::vector<double> values);

/// To four digits; as `given` where the samples say nothing.
mp::ClassTuning fit_tuning(const std::vector<Sample> &samples, const mp::ClassTuning &given);

}  // namespace mptune
