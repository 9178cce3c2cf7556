// A small network as a graph in mixed precision: fp16 with fp32 master weights, running statistics,
// and a dropout with a new mask in every step.  Contains no test macros, so that threads may run
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "support/device.h"
#include "tests/soak/checkpoint.h"
#include "tests/support/calls/graph_builder.h"

namespace mptest {

class Network {
 public:
  /// Multiples of 8, which avoid slower code paths.
  static constexpr int64_t kRows = 8, kIn = 16, kHidden = 24, kClasses = 8;

  /// Size of save()'s output: w1, gamma, beta and w2, mean and variance.
  static constexpr size_t kSavedBytes =
      sizeof(float) * (kIn * kHidden + 2 * kHidden + kHidden * kClasses + 2 * kHidden);

  explicit Network(mp_context_t context);
  Network(const Network &) = delete;
  Network &operator=(const Network &) = delete;

  /// Runs forward and backward on data derived from the step's number.
  void forward_and_backward(uint64_t step, mp_scaler_t scaler);

  mp_tensor_list_t grads() const { return grads_; }
  mp_tensor_list_t master() const { return master_; }
  mp_tensor_list_t model() const { return model_; }
  /// Number of elements of each parameter.
  const std::vector<int64_t> &numel() const { return numel_; }
  /// Gradient of the first weights, in its own 16-bit `dtype`.
  mp_graph_tensor_t first_weights() const;

  /// Saves master weights and running statistics for a checkpoint.
  void save(CheckpointWriter &to) const;
  void restore(CheckpointReader &from);
  /// Returns the 16-bit copies, which are derived from the masters unless rounding is stochastic.
  Bytes copies() const;
  void restore_copies(CheckpointReader &from);

 private:
  template <auto kDestroy>
  using Owner = mptools::Destroyer<kDestroy>;

  int32_t parameter(const char *name, const std::vector<int64_t> &extent);
  /// Returns parameters, then states.
  std::vector<int32_t> lasting() const;
  void write(int32_t tensor, const float *values) const;

  Caller caller_;
  std::unique_ptr<mp_autocast, Owner<mp_autocast_destroy>> policy_;
  GraphBuilder graph_;
  std::unique_ptr<mp_graph, Owner<mp_graph_destroy>> owner_;
  void *x_, *labels_, *offset_;
  std::vector<int32_t> states_;
  std::vector<int64_t> numel_;
  mp_tensor_list_t grads_ = nullptr, master_ = nullptr, model_ = nullptr;
};

}  // namespace mptest
