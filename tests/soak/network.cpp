#include "tests/soak/network.h"

#include "tests/support/input_values.h"

namespace mptest {

using mptools::check;
using mptools::kStream;

namespace {

int64_t numel_of(const mp_graph_tensor_t &info) {
  int64_t numel = 1;
  for (int32_t i = 0; i < info.rank; ++i) numel *= info.extent[i];
  return numel;
}

std::vector<float> reals(Random &random, int64_t count, double bound) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(random.real(-bound, bound)));
  return values;
}

template <typename T>
void upload(mp_context_t context, const mptools::Buffer &to, const std::vector<T> &values) {
  check(mp_memcpy(context, to.data(), values.data(), values.size() * sizeof(T), kStream));
}

}  // namespace

Network::Network(mp_context_t context)
    : context_(context),
      x_(mptools::make_buffer(context, kRows * kIn, MP_FP32)),
      labels_(context, kRows * static_cast<int64_t>(sizeof(int32_t))),
      offset_(context, sizeof(uint64_t)) {
  mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT | MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;
  mp_autocast_t policy = nullptr;
  check(mp_autocast_create(&policy, &config));
  policy_.reset(policy);
  mp_graph_t graph = nullptr;
  check(mp_graph_create(&graph, context));
  graph_.reset(graph);
  describe_nodes();
  check(mp_graph_set_autocast(graph, policy));
  check(mp_graph_compile(graph));
  check(mp_graph_bind(graph, x_input_, x_.data()));
  check(mp_graph_bind(graph, labels_input_, labels_.data()));
  check(mp_graph_bind(graph, offset_input_, offset_.data()));
  check(mp_graph_get_lists(graph, &grads_, &master_, &model_));
  write_first_weights();
}

int32_t Network::parameter(const char *name, const std::vector<int64_t> &extent) {
  int32_t index = -1;
  check(mp_graph_add_parameter(graph_.get(), name, static_cast<int32_t>(extent.size()),
                               extent.data(), &index));
  parameters_.push_back(index);
  numel_.push_back(numel_of(tensor(index)));
  return index;
}

int32_t Network::node(const char *op, const char *name, const std::vector<int32_t> &inputs,
                      const std::vector<mp_graph_attribute_t> &attributes) {
  int32_t output = -1;
  check(mp_graph_add_node(graph_.get(), op, name, inputs.data(),
                          static_cast<uint32_t>(inputs.size()), attributes.data(),
                          static_cast<uint32_t>(attributes.size()), &output, 1));
  return output;
}

void Network::describe_nodes() {
  const auto input = [&](const char *name, mp_dtype_t dtype, const std::vector<int64_t> &extent) {
    int32_t index = -1;
    check(mp_graph_add_input(graph_.get(), name, dtype, static_cast<int32_t>(extent.size()),
                             extent.data(), &index));
    return index;
  };
  const auto state = [&](const char *name) {
    const int64_t extent = kHidden;
    int32_t index = -1;
    check(mp_graph_add_state(graph_.get(), name, 1, &extent, &index));
    states_.push_back(index);
    return index;
  };
  x_input_ = input("x", MP_FP32, {kRows, kIn});
  labels_input_ = input("labels", MP_DTYPE_NONE, {kRows});
  offset_input_ = input("offset", MP_DTYPE_NONE, {});
  int32_t y = node("Linear", "fc1", {x_input_, parameter("w1", {kIn, kHidden})});
  const int32_t gamma = parameter("gamma", {kHidden}), beta = parameter("beta", {kHidden});
  const int32_t mean = state("mean"), variance = state("variance");
  y = node("BatchNorm", "norm", {y, gamma, beta, mean, variance});
  y = node("Relu", "relu", {y});
  y = node("Dropout", "dropout", {y, offset_input_},
           {mp_graph_float("p", 0.25), mp_graph_int("seed", 9)});
  y = node("Linear", "fc2", {y, parameter("w2", {kHidden, kClasses})});
  check(mp_graph_set_loss(graph_.get(), node("SoftmaxXent", "loss", {y, labels_input_})));
}

void Network::write_first_weights() {
  Random random(1);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const std::vector<float> values = reals(random, numel_[i], 0.5);
    check(mp_graph_write(graph_.get(), parameters_[i], values.data(), kStream));
    check(mp_stream_sync(context_, kStream));
  }
}

void Network::forward_and_backward(uint64_t step, mp_scaler_t scaler) {
  Random random(1000 + step);
  upload(context_, x_, reals(random, kRows * kIn, 1.0));
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < kRows; ++i)
    labels.push_back(static_cast<int32_t>(random.integer(0, kClasses - 1)));
  upload(context_, labels_, labels);
  upload(context_, offset_, std::vector<uint64_t>{step});
  check(mp_stream_sync(context_, kStream));
  check(mp_graph_forward(graph_.get(), MP_GRAPH_MODE_TRAINING, kStream));
  check(mp_graph_backward(graph_.get(), scaler, kStream));
}

mp_graph_tensor_t Network::tensor(int32_t index) const {
  mp_graph_tensor_t info;
  MP_INIT_STRUCT(&info);
  check(mp_graph_get_tensor(graph_.get(), index, &info));
  return info;
}

mp_graph_tensor_t Network::first_weights() const {
  return tensor(parameters_.front());
}

std::string Network::describe() const {
  size_t bytes = 0;
  check(mp_graph_describe(graph_.get(), nullptr, &bytes));
  std::string text(bytes, '\0');
  check(mp_graph_describe(graph_.get(), text.data(), &bytes));
  return text;
}

std::vector<int32_t> Network::lasting() const {
  std::vector<int32_t> all = parameters_;
  all.insert(all.end(), states_.begin(), states_.end());
  return all;
}

void Network::save(CheckpointWriter &to) const {
  for (const int32_t index : lasting()) {
    const mp_graph_tensor_t info = tensor(index);
    const int64_t bytes = numel_of(info) * static_cast<int64_t>(sizeof(float));
    to.add_bytes(mptools::download_sync(context_, static_cast<const uint8_t *>(info.data), bytes));
  }
}

void Network::restore(CheckpointReader &from) {
  for (const int32_t index : lasting()) {
    std::vector<float> values(static_cast<size_t>(numel_of(tensor(index))));
    const size_t bytes = values.size() * sizeof(float);
    std::memcpy(values.data(), from.take_bytes(bytes), bytes);
    check(mp_graph_write(graph_.get(), index, values.data(), kStream));
    check(mp_stream_sync(context_, kStream));
  }
}

Bytes Network::copies() const {
  Bytes all;
  for (const int32_t index : parameters_) {
    const mp_graph_tensor_t info = tensor(index);
    if (info.copy == nullptr) continue;
    const int64_t bytes = numel_of(info) * static_cast<int64_t>(mp_dtype_size(info.dtype_copy));
    const Bytes one =
        mptools::download_sync(context_, static_cast<const uint8_t *>(info.copy), bytes);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void Network::restore_copies(CheckpointReader &from) {
  for (const int32_t index : parameters_) {
    const mp_graph_tensor_t info = tensor(index);
    if (info.copy == nullptr) continue;
    const size_t bytes = static_cast<size_t>(numel_of(info)) * mp_dtype_size(info.dtype_copy);
    check(mp_memcpy(context_, info.copy, from.take_bytes(bytes), bytes, kStream));
  }
  check(mp_stream_sync(context_, kStream));
}

}  // namespace mptest
