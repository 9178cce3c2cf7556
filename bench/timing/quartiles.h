// Median and quartiles of samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace mpbench {

struct Quartiles {
  double q1, median, q3;
};

/// Quantile with linear interpolation between the two nearest samples.
inline double quantile(const std::vector<double> &sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - std::floor(position)) * (sorted[above] - sorted[below]);
}

/// Quartiles of at least one sample, in any order.
inline Quartiles quartiles_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {.q1 = quantile(samples, 0.25),
          .median = quantile(samples, 0.5),
          .q3 = quantile(samples, 0.75)};
}

}  // namespace mpbench
