// A network is a list of layers.  It walks over them, forward and backward, and gathers what they
// own: parameters, memory, gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "batch.h"
#include "layer.h"

namespace mpdemo {

class Network {
 public:
  /// @param layers  in the order of forward(); the last one gives the logits.
  Network(const Setup &setup, Layers layers);

  void initialise(Random &random);

  /// Computes logits().
  /// @param is_training  backward() is to follow.
  void forward(const Batch &batch, bool is_training);
  /// Computes all parameter gradients from dlogits(), after forward() of the same batch.
  /// @param found_inf  device, 1 float, optional: set to 1 by an overflowing activation gradient.
  void backward(const Batch &batch, float *found_inf);

  void *logits() const { return layers_.back()->y().data(); }
  void *dlogits() const { return layers_.back()->dy().data(); }
  int64_t classes() const { return layers_.back()->out(); }
  mp_dtype_t dtype() const { return setup_.dtype; }
  std::vector<Parameter> parameters() const;
  /// All but the optimizer's.
  Memory memory() const;

  /// All parameters as the optimizer has them, on the host.  Waits.
  std::vector<float> masters_sync() const;
  /// logits() as fp32 on the host.  Waits.
  std::vector<float> logits_sync(int64_t rows) const;
  /// Gradients of all weights, and all dy for `rows` rows, as fp32 on the host.  Waits.
  std::vector<float> weight_gradients_sync() const;
  std::vector<float> activation_gradients_sync(int64_t rows) const;

 private:
  void append_as_fp32(const void *tensor, int64_t numel, std::vector<float> &all) const;

  Setup setup_;
  Layers layers_;
  Buffer workspace_;
};

}  // namespace mpdemo
