// A small network as a graph in mixed precision: fp16 with fp32 master weights, running statistics,
// and a dropout with a new mask in every step.  Contains no test macros, so that threads may run
// it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "support/device.h"
#include "tests/soak/checkpoint.h"
#include "tests/support/calls/graph_builder.h"
#include "tests/support/input_values.h"

namespace mptest {

inline std::vector<float> reals(Random &random, int64_t count, double bound) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(random.real(-bound, bound)));
  return values;
}

class Network {
 public:
  /// Multiples of 8, which avoid slower code paths.
  static constexpr int64_t kRows = 8, kIn = 16, kHidden = 24, kClasses = 8;

  /// Size of save()'s output: w1, gamma, beta and w2, mean and variance.
  static constexpr size_t kSavedBytes =
      sizeof(float) * (kIn * kHidden + 2 * kHidden + kHidden * kClasses + 2 * kHidden);

  explicit Network(mp_context_t context)
      : caller_(context),
        policy_(make_autocast(caller_, MP_FP16)),
        graph_(caller_),
        owner_(graph_.graph()),
        x_(caller_.scratch(kRows * kIn * sizeof(float))),
        labels_(caller_.scratch(kRows * sizeof(int32_t))),
        offset_(caller_.scratch(sizeof(uint64_t))) {
    const int32_t x = graph_.input("x", MP_FP32, {kRows, kIn});
    const int32_t labels = graph_.input("labels", MP_DTYPE_NONE, {kRows});
    const int32_t offset = graph_.input("offset", MP_DTYPE_NONE, {});
    int32_t y = graph_.node("Linear", "fc1", {x, parameter("w1", {kIn, kHidden})});
    const int32_t gamma = parameter("gamma", {kHidden}), beta = parameter("beta", {kHidden});
    states_ = {graph_.state("mean", {kHidden}), graph_.state("variance", {kHidden})};
    y = graph_.node("BatchNorm", "norm", {y, gamma, beta, states_[0], states_[1]});
    y = graph_.node("Relu", "relu", {y});
    y = graph_.node("Dropout", "dropout", {y, offset},
                    {mp_graph_float("p", 0.25), mp_graph_int("seed", 9)});
    y = graph_.node("Linear", "fc2", {y, parameter("w2", {kHidden, kClasses})});
    graph_.loss(graph_.node("SoftmaxXent", "loss", {y, labels}));
    graph_.compile(policy_.get());
    graph_.bind(x, x_);
    graph_.bind(labels, labels_);
    graph_.bind(offset, offset_);
    mptools::check(mp_graph_get_lists(graph_.graph(), &grads_, &master_, &model_));
    Random random(1);
    for (size_t i = 0; i < numel_.size(); ++i)
      write(graph_.parameters[i], reals(random, numel_[i], 0.5).data());
  }
  Network(const Network &) = delete;
  Network &operator=(const Network &) = delete;

  /// Runs forward and backward on data derived from the step's number.
  void forward_and_backward(uint64_t step, mp_scaler_t scaler) {
    Random random(1000 + step);
    const std::vector<float> x = reals(random, kRows * kIn, 1.0);
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < kRows; ++i)
      labels.push_back(static_cast<int32_t>(random.integer(0, kClasses - 1)));
    const mp_context_t context = caller_.context();
    mptools::check(mp_memcpy(context, x_, x.data(), x.size() * sizeof(float), mptools::kStream));
    mptools::check(mp_memcpy(context, labels_, labels.data(), labels.size() * sizeof(int32_t),
                             mptools::kStream));
    mptools::check(mp_memcpy(context, offset_, &step, sizeof step, mptools::kStream));
    mptools::check(mp_stream_sync(context, mptools::kStream));
    mptools::check(mp_graph_forward(graph_.graph(), MP_GRAPH_MODE_TRAINING, mptools::kStream));
    mptools::check(mp_graph_backward(graph_.graph(), scaler, mptools::kStream));
  }

  mp_tensor_list_t grads() const { return grads_; }
  mp_tensor_list_t master() const { return master_; }
  mp_tensor_list_t model() const { return model_; }
  /// Number of elements of each parameter.
  const std::vector<int64_t> &numel() const { return numel_; }
  /// Gradient of the first weights, in its own 16-bit `dtype`.
  mp_graph_tensor_t first_weights() const { return graph_.info(graph_.parameters.front()); }

  /// Saves master weights and running statistics for a checkpoint.
  void save(CheckpointWriter &to) const {
    for (const int32_t index : lasting()) {
      const mp_graph_tensor_t info = graph_.info(index);
      const int64_t bytes = numel_of(info) * static_cast<int64_t>(sizeof(float));
      to.add_bytes(mptools::download_sync(caller_.context(),
                                          static_cast<const uint8_t *>(info.data), bytes));
    }
  }

  void restore(CheckpointReader &from) {
    for (const int32_t index : lasting()) {
      std::vector<float> values(static_cast<size_t>(numel_of(graph_.info(index))));
      const size_t bytes = values.size() * sizeof(float);
      std::memcpy(values.data(), from.take_bytes(bytes), bytes);
      write(index, values.data());
    }
  }

  /// Returns the 16-bit copies, which are derived from the masters unless rounding is stochastic.
  Bytes copies() const {
    Bytes all;
    for (const int32_t index : graph_.parameters) {
      const mp_graph_tensor_t info = graph_.info(index);
      if (info.copy == nullptr) continue;
      const int64_t bytes = numel_of(info) * static_cast<int64_t>(mp_dtype_size(info.dtype_copy));
      const Bytes one =
          mptools::download_sync(caller_.context(), static_cast<const uint8_t *>(info.copy), bytes);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  void restore_copies(CheckpointReader &from) {
    for (const int32_t index : graph_.parameters) {
      const mp_graph_tensor_t info = graph_.info(index);
      if (info.copy == nullptr) continue;
      const size_t bytes = static_cast<size_t>(numel_of(info)) * mp_dtype_size(info.dtype_copy);
      mptools::check(
          mp_memcpy(caller_.context(), info.copy, from.take_bytes(bytes), bytes, mptools::kStream));
    }
    mptools::check(mp_stream_sync(caller_.context(), mptools::kStream));
  }

 private:
  template <auto kDestroy>
  using Owner = mptools::Destroyer<kDestroy>;

  int32_t parameter(const char *name, const std::vector<int64_t> &extent) {
    const int32_t index = graph_.parameter(name, extent);
    numel_.push_back(numel_of(graph_.info(index)));
    return index;
  }

  /// Returns parameters, then states.
  std::vector<int32_t> lasting() const {
    std::vector<int32_t> all = graph_.parameters;
    all.insert(all.end(), states_.begin(), states_.end());
    return all;
  }

  void write(int32_t tensor, const float *values) const {
    mptools::check(mp_graph_write(graph_.graph(), tensor, values, mptools::kStream));
    mptools::check(mp_stream_sync(caller_.context(), mptools::kStream));
  }

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
