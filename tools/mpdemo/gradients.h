// Effect of fp16 on gradients: fraction that rounds to zero, and histogram.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mpdemo {

/// Gradients of one batch, computed in fp32.
struct Gradients {
  std::vector<float> weights;      ///< layers with weights
  std::vector<float> activations;  ///< layer outputs, including logits
};

/// Exponent of half the smallest fp16 number.  Up to this magnitude x rounds to 0: ties go to even.
constexpr int kLog2Flush = -25;

/// Fraction of the nonzero gradients g that fp16 rounds to zero, |S g| <= 2^-25.  Exact zeros,
/// which relu produces in large numbers, are excluded: no scale could save them.
double flushed_share(std::span<const float> gradients, double loss_scale);

/// Fractions of the nonzero values by magnitude: bin i counts log2|g| in kLog2Low + [i, i + 1) /
/// kBinsPerOctave.
struct Histogram {
  static constexpr int kLog2Low = -60;
  static constexpr int kLog2High = 20;
  static constexpr int kBinsPerOctave = 2;

  std::vector<double> share;

  static double left_edge(size_t bin) {
    return kLog2Low + static_cast<double>(bin) / kBinsPerOctave;
  }
};

/// Values outside the range count in the first or last bin.
Histogram histogram(std::span<const float> gradients);

}  // namespace mpdemo
