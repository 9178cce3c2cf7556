// Perceptrons whose layers are all equally wide: networks of which little but their launches is asked.
#pragma once

#include <cstdint>
#include <string>

#include "bench/common.h"

namespace mpbench {

struct PerceptronShape {
  int64_t layers;  ///< with relu; behind them is one more, for as many classes as they are wide
  int64_t width;   ///< of all layers, and of the input
  int64_t batch;

  /// "perceptron 8 x 32, batch 16"
  std::string name() const {
    const auto number = [](int64_t value) { return static_cast<long long>(value); };
    return text("perceptron %lld x %lld, batch %lld", number(layers), number(width), number(batch));
  }
  int64_t products() const { return layers + 1; }
  int64_t parameters() const { return products() * (width * width + width); }
  /// Forward, gradients of all weights, and of the data of all but the first product.
  double flop() const {
    return 2.0 * static_cast<double>(batch * width * width) *
           static_cast<double>(3 * products() - 1);
  }
};

}  // namespace mpbench
