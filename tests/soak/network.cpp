#include "tests/soak/network.h"

#include "tests/support/input_values.h"

namespace mptest {

using mptools::check;
using mptools::kStream;

namespace {

std::vector<float> reals(Random &random, int64_t count, double bound) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(random.real(-bound, bound)));
  return values;
}

}  // namespace

Network::Network(mp_context_t context)
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
  check(mp_graph_get_lists(graph_.graph(), &grads_, &master_, &model_));
  Random random(1);
  for (size_t i = 0; i < numel_.size(); ++i)
    write(graph_.parameters[i], reals(random, numel_[i], 0.5).data());
}

int32_t Network::parameter(const char *name, const std::vector<int64_t> &extent) {
  const int32_t index = graph_.parameter(name, extent);
  numel_.push_back(numel_of(graph_.info(index)));
  return index;
}

void Network::write(int32_t tensor, const float *values) const {
  check(mp_graph_write(graph_.graph(), tensor, values, kStream));
  check(mp_stream_sync(caller_.context(), kStream));
}

void Network::forward_and_backward(uint64_t step, mp_scaler_t scaler) {
  Random random(1000 + step);
  const std::vector<float> x = reals(random, kRows * kIn, 1.0);
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < kRows; ++i)
    labels.push_back(static_cast<int32_t>(random.integer(0, kClasses - 1)));
  const mp_context_t context = caller_.context();
  check(mp_memcpy(context, x_, x.data(), x.size() * sizeof(float), kStream));
  check(mp_memcpy(context, labels_, labels.data(), labels.size() * sizeof(int32_t), kStream));
  check(mp_memcpy(context, offset_, &step, sizeof step, kStream));
  check(mp_stream_sync(context, kStream));
  check(mp_graph_forward(graph_.graph(), MP_GRAPH_MODE_TRAINING, kStream));
  check(mp_graph_backward(graph_.graph(), scaler, kStream));
}

mp_graph_tensor_t Network::first_weights() const {
  return graph_.info(graph_.parameters.front());
}

std::vector<int32_t> Network::lasting() const {
  std::vector<int32_t> all = graph_.parameters;
  all.insert(all.end(), states_.begin(), states_.end());
  return all;
}

void Network::save(CheckpointWriter &to) const {
  for (const int32_t index : lasting()) {
    const mp_graph_tensor_t info = graph_.info(index);
    const int64_t bytes = numel_of(info) * static_cast<int64_t>(sizeof(float));
    to.add_bytes(
        mptools::download_sync(caller_.context(), static_cast<const uint8_t *>(info.data), bytes));
  }
}

void Network::restore(CheckpointReader &from) {
  for (const int32_t index : lasting()) {
    std::vector<float> values(static_cast<size_t>(numel_of(graph_.info(index))));
    const size_t bytes = values.size() * sizeof(float);
    std::memcpy(values.data(), from.take_bytes(bytes), bytes);
    write(index, values.data());
  }
}

Bytes Network::copies() const {
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

void Network::restore_copies(CheckpointReader &from) {
  for (const int32_t index : graph_.parameters) {
    const mp_graph_tensor_t info = graph_.info(index);
    if (info.copy == nullptr) continue;
    const size_t bytes = static_cast<size_t>(numel_of(info)) * mp_dtype_size(info.dtype_copy);
    check(mp_memcpy(caller_.context(), info.copy, from.take_bytes(bytes), bytes, kStream));
  }
  check(mp_stream_sync(caller_.context(), kStream));
}

}  // namespace mptest
