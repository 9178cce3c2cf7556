#include "perceptron.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <tuple>
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
    : machine_(machine) {
  mp_graph_t graph = nullptr;
  check(mp_graph_create(&graph, machine.context()));
  graph_.reset(graph);
  check(mp_graph_set_loss(graph, describe(shape)));

  mp_autocast_t policy = nullptr;
  if (dtype != MP_FP32) {
    mp_autocast_config_t config = mp_autocast_config_default(dtype);
    config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT | MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;
    check(mp_autocast_create(&policy, &config));
  }
  const std::unique_ptr<mp_autocast, mptools::Destroyer<mp_autocast_destroy>> owner(policy);
  if (policy != nullptr) check(mp_graph_set_autocast(graph, policy));
  check(mp_graph_compile(graph));

  for (size_t i = 0; i < weights_.size(); ++i) {
    check(mp_graph_write(graph, weights_[i], start.weights[i].data(), machine.stream()));
    check(mp_graph_write(graph, biases_[i], start.biases[i].data(), machine.stream()));
  }
  check(mp_graph_bind(graph, x_, start.x.data()));
  check(mp_graph_bind(graph, labels_, start.labels.data()));
  machine.synchronize();
}

/// Describes the network and returns the loss tensor.
int32_t PerceptronAsGraph::describe(const PerceptronShape &shape) {
  mp_graph_t graph = graph_.get();
  const int64_t x_extent[] = {shape.batch, shape.width};
  const int64_t weight_extent[] = {shape.width, shape.width};
  check(mp_graph_add_input(graph, "x", MP_FP32, 2, x_extent, &x_));
  int32_t y = x_;
  for (int64_t i = 0; i < shape.products(); ++i) {
    const std::string name = text("fc%lld", static_cast<long long>(i));
    int32_t weight = -1, bias = -1;
    check(mp_graph_add_parameter(graph, (name + ".w").c_str(), 2, weight_extent, &weight));
    check(mp_graph_add_parameter(graph, (name + ".b").c_str(), 1, weight_extent, &bias));
    weights_.push_back(weight);
    biases_.push_back(bias);
    const int32_t inputs[] = {y, weight, bias};
    check(mp_graph_add_node(graph, "Linear", name.c_str(), inputs, 3, nullptr, 0, &y, 1));
    if (i == shape.layers) break;
    const int32_t z = y;
    check(mp_graph_add_node(graph, "Relu", (name + "/relu").c_str(), &z, 1, nullptr, 0, &y, 1));
  }
  check(mp_graph_add_input(graph, "labels", MP_DTYPE_NONE, 1, x_extent, &labels_));
  const int32_t inputs[] = {y, labels_};
  // All three outputs are requested, to find which of them a step computes.
  int32_t outputs[] = {-1, -1, -1};
  check(mp_graph_add_node(graph, "SoftmaxXent", "loss", inputs, 2, nullptr, 0, outputs, 3));
  std::tie(loss_, row_loss_, correct_) = std::tie(outputs[0], outputs[1], outputs[2]);
  return loss_;
}

void PerceptronAsGraph::step() const {
  check(mp_graph_forward(graph_.get(), MP_GRAPH_MODE_TRAINING, machine_.stream()));
  check(mp_graph_backward(graph_.get(), /*scaler=*/nullptr, machine_.stream()));
}

std::vector<std::string> PerceptronAsGraph::calls() const {
  size_t bytes = 0;
  check(mp_graph_describe(graph_.get(), nullptr, &bytes));
  std::string description(bytes, '\0');
  check(mp_graph_describe(graph_.get(), description.data(), &bytes));

  std::vector<std::string> calls;
  std::istringstream lines(description.c_str());
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find("  mp_");
    if (begin == std::string::npos) continue;
    const size_t name = begin + 2;
    const std::string call = line.substr(name, line.find("  ", name) - name);
    if (line.rfind("inference", 0) != 0) calls.push_back(call);
  }
  return calls;
}

std::vector<Written> PerceptronAsGraph::written() const {
  std::vector<Written> all;
  for (size_t i = 0; i < weights_.size(); ++i)
    for (const int32_t parameter : {weights_[i], biases_[i]}) {
      const mp_graph_tensor_t tensor = info(parameter);
      int64_t count = 1;
      for (int32_t axis = 0; axis < tensor.rank; ++axis) count *= tensor.extent[axis];
      all.push_back({.name = std::string("gradient of ") + tensor.name,
                     .data = tensor.grad,
                     .bytes = count * dtype_bytes(tensor.dtype_grad)});
    }
  all.push_back({"the loss", info(loss_).data, static_cast<int64_t>(sizeof(float))});
  all.push_back({"row losses", info(row_loss_).data,
                 info(row_loss_).extent[0] * static_cast<int64_t>(sizeof(float))});
  all.push_back(
      {"number of correct rows", info(correct_).data, sizeof(int64_t), /*may_be_zero=*/true});
  return all;
}

mp_graph_tensor_t PerceptronAsGraph::info(int32_t tensor) const {
  mp_graph_tensor_t info;
  MP_INIT_STRUCT(&info);
  check(mp_graph_get_tensor(graph_.get(), tensor, &info));
  return info;
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
