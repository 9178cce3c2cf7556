// A small network as a graph in mixed precision: fp16 with fp32 master weights, running statistics,
// and a dropout with a new mask in every step.  Contains no test macros, so that threads may run
// it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "support/device.h"
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
  static constexpr int64_t kNumel = kIn * kHidden + 2 * kHidden + kHidden * kClasses;

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
    int32_t y = graph_.node("Linear", "fc1", {x, graph_.parameter("w1", {kIn, kHidden})});
    const int32_t gamma = graph_.parameter("gamma", {kHidden}),
                  beta = graph_.parameter("beta", {kHidden});
    states_ = {graph_.state("mean", {kHidden}), graph_.state("variance", {kHidden})};
    y = graph_.node("BatchNorm", "norm", {y, gamma, beta, states_[0], states_[1]});
    y = graph_.node("Relu", "relu", {y});
    y = graph_.node("Dropout", "dropout", {y, offset},
                    {mp_graph_float("p", 0.25), mp_graph_int("seed", 9)});
    y = graph_.node("Linear", "fc2", {y, graph_.parameter("w2", {kHidden, kClasses})});
    graph_.loss(graph_.node("SoftmaxXent", "loss", {y, labels}));
    graph_.compile(policy_.get());
    graph_.bind(x, x_);
    graph_.bind(labels, labels_);
    graph_.bind(offset, offset_);
    mptools::check(mp_graph_get_lists(graph_.graph(), &grads_, &master_, &model_));
    Random random(1);
    for (const int32_t parameter : graph_.parameters)
      write(parameter, reals(random, numel_of(graph_.info(parameter)), 0.5).data());
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
  /// Gradient of the first weights, in its own 16-bit `dtype`.
  mp_graph_tensor_t first_weights() const { return graph_.info(graph_.parameters.front()); }

  /// Returns the running statistics, then the 16-bit copies, which follow from the masters.
  Bytes states_and_copies() const {
    Bytes all;
    const auto add = [&](const void *data, size_t bytes) {
      const Bytes part = mptools::download_sync(
          caller_.context(), static_cast<const uint8_t *>(data), static_cast<int64_t>(bytes));
      all.insert(all.end(), part.begin(), part.end());
    };
    for (const int32_t state : states_) add(graph_.info(state).data, kHidden * sizeof(float));
    for (const int32_t parameter : graph_.parameters) {
      const mp_graph_tensor_t info = graph_.info(parameter);
      if (info.copy != nullptr)
        add(info.copy, static_cast<size_t>(numel_of(info)) * mp_dtype_size(info.dtype_copy));
    }
    return all;
  }

  /// @param saved  output of states_and_copies()
  void restore_states(const uint8_t *saved) {
    for (const int32_t state : states_) {
      float values[kHidden];
      std::memcpy(values, saved, sizeof values);
      write(state, values);
      saved += sizeof values;
    }
  }

 private:
  template <auto kDestroy>
  using Owner = mptools::Destroyer<kDestroy>;

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
  mp_tensor_list_t grads_ = nullptr, master_ = nullptr, model_ = nullptr;
};

}  // namespace mptest
