// A small network as a graph in mixed precision: fp16 with fp32 master weights, running statistics and a
// dropout that draws another mask in every step.  No test macro is in it: threads may run it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/device.h"
#include "tests/soak/checkpoint.h"

namespace mptest {

class Network {
 public:
  /// Multiples of 8, which need no slower path.
  static constexpr int64_t kRows = 8, kIn = 16, kHidden = 24, kClasses = 8;

  /// What save() writes: w1, gamma, beta and w2, mean and variance.
  static constexpr size_t kSavedBytes =
      sizeof(float) * (kIn * kHidden + 2 * kHidden + kHidden * kClasses + 2 * kHidden);

  explicit Network(mp_context_t context);
  Network(const Network &) = delete;
  Network &operator=(const Network &) = delete;

  /// Forward and backward on data that follow from the step's number.
  void forward_and_backward(uint64_t step, mp_scaler_t scaler);

  mp_tensor_list_t grads() const { return grads_; }
  mp_tensor_list_t master() const { return master_; }
  mp_tensor_list_t model() const { return model_; }
  /// Elements of each parameter.
  const std::vector<int64_t> &numel() const { return numel_; }
  /// The gradient of the first weights: 16 bits wide, `dtype` of its own.
  mp_graph_tensor_t first_weights() const;
  std::string describe() const;

  /// Master weights and running statistics, which a checkpoint needs.
  void save(CheckpointWriter &to) const;
  void restore(CheckpointReader &from);
  /// The 16-bit copies, which follow from the masters unless they are rounded at random.
  Bytes copies() const;
  void restore_copies(CheckpointReader &from);

 private:
  template <auto kDestroy>
  using Owner = mptools::Destroyer<kDestroy>;

  int32_t parameter(const char *name, const std::vector<int64_t> &extent);
  int32_t node(const char *op, const char *name, const std::vector<int32_t> &inputs,
               const std::vector<mp_graph_attribute_t> &attributes = {});
  void describe_nodes();
  void write_first_weights();
  mp_graph_tensor_t tensor(int32_t index) const;
  /// Parameters, then states.
  std::vector<int32_t> lasting() const;

  mp_context_t context_;
  mptools::Buffer x_, labels_, offset_;
  std::unique_ptr<mp_autocast, Owner<mp_autocast_destroy>> policy_;
  std::unique_ptr<mp_graph, Owner<mp_graph_destroy>> graph_;
  int32_t x_input_ = -1, labels_input_ = -1, offset_input_ = -1;
  std::vector<int32_t> parameters_, states_;
  std::vector<int64_t> numel_;
  mp_tensor_list_t grads_ = nullptr, master_ = nullptr, model_ = nullptr;
};

}  // namespace mptest
