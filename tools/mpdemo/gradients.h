// What fp16 does to gradients: how many of them round to zero, and where they lie.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mpdemo {

/// Gradients of one batch, computed in fp32.
struct Gradients {
  std::vector<float> weights;      ///< of all layers that have weights
  std::vector<float> activations;  ///< of what the layers hand on, the logits included
};

/// Exponent of half the smallest fp16 number.  Up to here |x| rounds to 0: ties go to even.
constexpr int kLog2Flush = -25;

/// Share of the nonzero gradients g that fp16 makes zero, |S g| <= 2^-25.  Exact zeros, which relu
/// produces in quantity, are left out: no scale could save them.
double flushed_share(std::span<const float> gradients, double loss_scale);

/// Shares of the nonzero values by magnitude: bin i counts log2|g| in
/// kLog2Low + [i, i + 1) / kBinsPerOctave.
struct Histogram {
  static constexpr int kLog2Low = -60;
  static constexpr int kLog2High = 20;
  static constexpr int kBinsPerOctave = 2;

  std::vector<double> share;

  static double left_edge(size_t bin) {
    return kLog2Low + static_cast<double>(bin) / kBinsPerOctave;
  }
};

/// Values outside the range count in its first or last bin.
Histogram histogram(std::span<const float> gradients);

}  // namespace mpdemo
