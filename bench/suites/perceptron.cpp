#include "perceptron.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <utility>

namespace mpbench {
namespace {

constexpr const char *kCast = "mp_cast", *kGemm = "mp_gemm", *kMemset = "mp_memset",
                     *kLoss = "mp_softmax_xent";

/// Uniform values in [-most, most].
std::vector<float> uniform(std::mt19937 &bits, int64_t count, float most) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values) value = most * (static_cast<float>(bits()) * 0x1p-31f - 1.0f);
  return values;
}

template <typename T>
Buffer uploaded(const Machine &machine, const std::vector<T> &values) {
  const size_t bytes = values.size() * sizeof(T);
  Buffer buffer(machine.context(), static_cast<int64_t>(bytes));
  check(mp_memcpy(machine.context(), buffer.data(), values.data(), bytes, machine.stream()));
  machine.synchronize();
  return buffer;
}

Buffer cast(const Machine &machine, const Buffer &values, mp_dtype_t dtype) {
  const int64_t count = values.bytes() / dtype_bytes(MP_FP32);
  Buffer low = make_buffer(machine.context(), count, dtype);
  check(mp_cast(machine.context(), values.data(), MP_FP32, low.data(), dtype, count,
                machine.stream()));
  return low;
}

}  // namespace

PerceptronStart::PerceptronStart(const Machine &machine, const PerceptronShape &shape) {
  std::mt19937 bits(1);
  // Initialization of He et al. 2015: relu halves the variance, and gradients keep their size
  // across layers.
  const float most = std::sqrt(6.0f / static_cast<float>(shape.width));
  for (int64_t i = 0; i < shape.products(); ++i) {
    weights.push_back(uniform(bits, shape.width * shape.width, most));
    biases.push_back(uniform(bits, shape.width, most));
  }
  x = uploaded(machine, uniform(bits, shape.batch * shape.width, 1.0f));
  std::vector<int32_t> classes(static_cast<size_t>(shape.batch));
  for (int32_t &one : classes)
    one = static_cast<int32_t>(bits() % static_cast<uint32_t>(shape.width));
  labels = uploaded(machine, classes);
}

// ---------------------------------------------------------------------------- as a graph

PerceptronAsGraph::PerceptronAsGraph(const Machine &machine, const PerceptronShape &shape,
                                     mp_dtype_t dtype, const PerceptronStart &start)
    : machine_(machine), graph_(mp::graph::create(machine.context())) {
  const int32_t x = graph_.input("x", MP_FP32, {shape.batch, shape.width});
  int32_t y = x;
  for (int64_t i = 0; i < shape.products(); ++i) {
    const std::string name = text("fc%lld", static_cast<long long>(i));
    const int32_t weight = graph_.parameter((name + ".w").c_str(), {shape.width, shape.width});
    const int32_t bias = graph_.parameter((name + ".b").c_str(), {shape.width});
    parameters_.insert(parameters_.end(), {weight, bias});
    y = graph_.node("Linear", name.c_str(), {y, weight, bias});
    if (i < shape.layers) y = graph_.node("Relu", (name + "/relu").c_str(), {y});
  }
  const int32_t labels = graph_.input("labels", MP_DTYPE_NONE, {shape.batch});
  // All three outputs are requested, to find which of them a step computes.
  outputs_ = graph_.node_outputs("SoftmaxXent", "loss", {y, labels}, 3);
  graph_.loss(outputs_[0]);

  mp::autocast policy;
  if (dtype != MP_FP32) {
    mp_autocast_config_t config = mp_autocast_config_default(dtype);
    config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT | MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;
    policy = mp::autocast::create(config);
    graph_.autocast(policy.get());
  }
  graph_.compile();

  for (size_t i = 0; i < parameters_.size(); ++i)
    graph_.write(parameters_[i], (i % 2 == 0 ? start.weights : start.biases)[i / 2].data(),
                 machine.stream());
  graph_.bind(x, start.x.data());
  graph_.bind(labels, start.labels.data());
  machine.synchronize();
}

void PerceptronAsGraph::step() const {
  graph_.forward(MP_GRAPH_MODE_TRAINING, machine_.stream());
  graph_.backward(/*scaler=*/nullptr, machine_.stream());
}

std::vector<std::string> PerceptronAsGraph::calls() const {
  std::vector<std::string> calls;
  std::istringstream lines(graph_.describe());
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find("  mp_");
    if (begin == std::string::npos || line.starts_with("inference")) continue;
    calls.push_back(line.substr(begin + 2, line.find("  ", begin + 2) - begin - 2));
  }
  return calls;
}

std::vector<Written> PerceptronAsGraph::written() const {
  std::vector<Written> all;
  for (const int32_t parameter : parameters_) {
    const mp_graph_tensor_t tensor = graph_.get_tensor(parameter);
    int64_t count = 1;
    for (int32_t axis = 0; axis < tensor.rank; ++axis) count *= tensor.extent[axis];
    all.push_back({.name = std::string("gradient of ") + tensor.name,
                   .data = tensor.grad,
                   .bytes = count * dtype_bytes(tensor.dtype_grad)});
  }
  const mp_graph_tensor_t loss = graph_.get_tensor(outputs_[0]),
                          row_loss = graph_.get_tensor(outputs_[1]),
                          correct = graph_.get_tensor(outputs_[2]);
  all.push_back({"the loss", loss.data, sizeof(float)});
  all.push_back(
      {"row losses", row_loss.data, row_loss.extent[0] * static_cast<int64_t>(sizeof(float))});
  all.push_back({"number of correct rows", correct.data, sizeof(int64_t), /*may_be_zero=*/true});
  return all;
}

// ---------------------------------------------------------------------------- by hand

PerceptronByHand::PerceptronByHand(const Machine &machine, const PerceptronShape &shape,
                                   mp_dtype_t dtype, const PerceptronStart &start)
    : machine_(machine),
      shape_(shape),
      dtype_(dtype),
      x_(start.x.as<float>()),
      labels_(start.labels.as<int32_t>()),
      forward_(mp_gemm_desc_default(shape.batch, shape.width, shape.width, dtype, dtype)),
      data_gradient_(forward_),
      weight_gradient_(mp_gemm_desc_default(shape.width, shape.width, shape.batch, dtype, dtype)),
      row_sum_(mp_gemm_desc_default(1, shape.width, shape.batch, dtype, MP_FP32)),
      xent_(mp_xent_desc_default(shape.batch, shape.width, dtype)) {
  data_gradient_.op_b = MP_OP_T;
  data_gradient_.ld_b = shape.width;
  weight_gradient_.op_a = MP_OP_T;
  weight_gradient_.ld_a = shape.width;
  int64_t workspace_bytes = 0;
  alignas(16) float any;  // queries read only its address
  mp_epilogue_t sums = mp_epilogue_default();
  sums.dbias = &any;
  for (const mp_gemm_desc_t *desc : {&forward_, &data_gradient_, &weight_gradient_, &row_sum_})
    workspace_bytes = std::max(workspace_bytes,
                               bytes_from(mp_gemm_workspace_size, machine.context(), desc, &sums));
  const mp_context_t context = machine.context();
  workspace_ = Buffer(context, workspace_bytes);
  const int64_t count = shape.batch * shape.width;
  if (dtype != MP_FP32) low_x_ = make_buffer(context, count, dtype);
  ones_ =
      cast(machine, uploaded(machine, std::vector<float>(static_cast<size_t>(shape.batch), 1.0f)),
           dtype);
  for (Buffer &dz : dz_) dz = make_buffer(context, count, dtype);
  loss_ = make_buffer(context, 1, MP_FP32);
  row_loss_ = make_buffer(context, shape.batch, MP_FP32);
  correct_ = Buffer(context, sizeof(int64_t));
  for (size_t i = 0; i < start.weights.size(); ++i) layers_.push_back(make_layer(i, start));
  machine.synchronize();
}

PerceptronByHand::Layer PerceptronByHand::make_layer(size_t index,
                                                     const PerceptronStart &start) const {
  const mp_context_t context = machine_.context();
  Layer layer{};
  layer.master = uploaded(machine_, start.weights[index]);
  if (dtype_ != MP_FP32) layer.model = cast(machine_, layer.master, dtype_);
  layer.weight = dtype_ != MP_FP32 ? layer.model.data() : layer.master.data();
  layer.bias = uploaded(machine_, start.biases[index]);
  layer.weight_grad = make_buffer(context, shape_.width * shape_.width, dtype_);
  layer.bias_grad = make_buffer(context, shape_.width, MP_FP32);
  layer.y = make_buffer(context, shape_.batch * shape_.width, dtype_);

  const bool is_last = static_cast<int64_t>(index) == shape_.layers;
  layer.forward = mp_epilogue_default();
  layer.forward.bias = layer.bias.data();
  layer.forward.dtype_bias = MP_FP32;
  layer.forward.activation = is_last ? MP_ACT_NONE : MP_ACT_RELU;
  layer.below = mp_epilogue_default();
  layer.below.activation = MP_ACT_DRELU;
  layer.below.aux = layer.y.data();
  layer.below.dbias = layer.bias_grad.as<float>();
  return layer;
}

void PerceptronByHand::multiply(const mp_gemm_desc_t &desc, const void *a, const void *b, void *d,
                                const mp_epilogue_t *epilogue) const {
  check(mp_gemm(machine_.context(), &desc, a, b, nullptr, d, epilogue, workspace_.data(),
                static_cast<size_t>(workspace_.bytes()), machine_.stream()));
}

void PerceptronByHand::step() const {
  const mp_context_t context = machine_.context();
  const mp_stream_t stream = machine_.stream();
  const void *x = x_;
  if (dtype_ != MP_FP32) {
    check(
        mp_cast(context, x_, MP_FP32, low_x_.data(), dtype_, shape_.batch * shape_.width, stream));
    x = low_x_.data();
  }
  const void *below = x;
  for (const Layer &layer : layers_) {
    multiply(forward_, below, layer.weight, layer.y.data(), &layer.forward);
    below = layer.y.data();
  }

  void *dz = dz_[0].data(), *dz_below = dz_[1].data();
  // mp_softmax_xent adds to the count.
  check(mp_memset(context, correct_.data(), 0, sizeof(int64_t), stream));
  mp_xent_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = below;
  t.labels = labels_;
  t.row_loss = row_loss_.as<float>();
  t.loss = loss_.as<float>();
  t.correct = correct_.as<int64_t>();
  t.dx = dz;
  check(mp_softmax_xent(context, &xent_, &t, stream));
  multiply(row_sum_, ones_.data(), dz, layers_.back().bias_grad.data(), nullptr);
  for (size_t i = layers_.size() - 1; i > 0; --i) {
    const Layer &layer = layers_[i], &before = layers_[i - 1];
    multiply(weight_gradient_, before.y.data(), dz, layer.weight_grad.data(), nullptr);
    multiply(data_gradient_, dz, layer.weight, dz_below, &before.below);
    std::swap(dz, dz_below);
  }
  multiply(weight_gradient_, x, dz, layers_.front().weight_grad.data(), nullptr);
}

std::vector<std::string> PerceptronByHand::calls() const {
  std::vector<std::string> calls;
  if (dtype_ != MP_FP32) calls.emplace_back(kCast);
  calls.insert(calls.end(), layers_.size(), kGemm);
  calls.emplace_back(kMemset);
  calls.emplace_back(kLoss);
  // Gradients of the last bias, of all weights, and of the data of all layers except the first.
  calls.insert(calls.end(), 2 * layers_.size(), kGemm);
  return calls;
}

std::vector<Written> PerceptronByHand::written() const {
  std::vector<Written> all;
  for (const Layer &layer : layers_)
    for (const Buffer *gradient : {&layer.weight_grad, &layer.bias_grad})
      all.push_back({"", gradient->data(), gradient->bytes()});
  for (const Buffer *one : {&loss_, &row_loss_, &correct_})
    all.push_back({"", one->data(), one->bytes()});
  return all;
}

}  // namespace mpbench
