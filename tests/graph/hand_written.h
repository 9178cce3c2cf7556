// A network as a graph and as single calls; the two forms must be bitwise equal.
#pragma once

#include <memory>
#include <vector>

#include "tests/graph/described.h"

namespace mptest {

/// A network in either form.
class Trained {
 public:
  virtual ~Trained() = default;
  /// @param x  device, fp32, of the network's input
  virtual void forward_and_backward(int64_t rows, const float *x, const int32_t *labels,
                                    mp_scaler_t scaler) = 0;
  virtual void update(mp_scaler_t scaler) = 0;
  virtual std::vector<float> masters() const = 0;
  virtual std::vector<double> logits(int64_t rows) const = 0;
};

/// Sizes; some are not multiples of any tile size.
struct Convnet {
  static constexpr int64_t rows = 6, side = 12, channels = 8, more_channels = 16, hidden = 28,
                           classes = 7;
};

/// @param low  MP_FP32: no autocast
std::unique_ptr<Trained> convnet_as_graph(mp_dtype_t low);
std::unique_ptr<Trained> convnet_by_hand(mp_dtype_t dtype);

/// Initial parameters of both forms, in order.
std::vector<Floats32> convnet_parameters();

}  // namespace mptest
