// Perceptrons with layers of equal width, for measuring launch overhead.
#pragma once

#include <cstdint>
#include <string>

#include "bench/common.h"

namespace mpbench {

struct PerceptronShape {
  int64_t layers;  ///< layers with relu, followed by a layer with `width` classes
  int64_t width;   ///< width of all layers and the input
  int64_t batch;

  /// Name, e.g. "perceptron 8 x 32, batch 16".
  std::string name() const {
    const auto number = [](int64_t value) { return static_cast<long long>(value); };
    return text("perceptron %lld x %lld, batch %lld", number(layers), number(width), number(batch));
  }
  int64_t products() const { return layers + 1; }
  int64_t parameters() const { return products() * (width * width + width); }
  /// Operations of the forward GEMMs, the weight gradients, and the data gradients except the
  /// first.
  double flop() const {
    return 2.0 * static_cast<double>(batch * width * width) *
           static_cast<double>(3 * products() - 1);
  }
};

}  // namespace mpbench
