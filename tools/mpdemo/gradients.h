// What fp16 does to gradients: how many of them round to zero, and where they lie.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mpdemo {

/// Gradients of one batch, computed in fp32.
struct Gradients {
  std::vector<float> weights;      ///< of all W
  std::vector<float> activations;  ///< of all z = x W + b, the logits included
};

/// Exponents of three limits of fp16.
constexpr int kLog2Flush =
    -25;  ///< |x| <= 2^-25 rounds to 0: half the smallest number, ties to even
constexpr int kLog2Subnormal = -14;  ///< below, one bit of precision is lost per octave
constexpr int kLog2Overflow = 16;    ///< |x| >= 65520, just under 2^16, rounds to infinity

/// Share of the nonzero gradients g that fp16 makes zero, |S g| <= 2^-25.  Exact zeros, which relu
/// produces in quantity, are left out: no scale could save them.
double flushed_share(std::span<const float> gradients, double loss_scale);

/// Shares of the nonzero values by magnitude: bin i counts log2|g| in
/// [kLog2Low + i, kLog2Low + i + 1) / kBinsPerOctave.
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
