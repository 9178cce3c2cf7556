// Fit of the constants of kernels/gemm/tuning.h to measured times.
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

/// Returns predicted / measured - 1.
inline double relative_error(const Sample &sample, const mp::ClassTuning &tuning) {
  return predicted(sample, tuning) / sample.us - 1;
}

/// Median of unordered values.
double median(std::vector<double> values);

/// Constants rounded to four digits; those of `given` if no sample depends on them.
mp::ClassTuning fit_tuning(const std::vector<Sample> &samples, const mp::ClassTuning &given);

}  // namespace mptune
