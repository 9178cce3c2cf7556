#include "description.h"

#include <cmath>
#include <functional>
#include <numeric>

namespace mpdemo {
namespace {

int64_t product(const std::vector<int64_t> &extent) {
  return std::accumulate(extent.begin(), extent.end(), int64_t{1}, std::multiplies<>());
}

/// He et al. 2015: a uniform distribution with variance 2 / fan_in preserves the size of
/// activations through relu.
double he_bound(int64_t fan_in) {
  return std::sqrt(6.0 / static_cast<double>(fan_in));
}

Initial uniform_or_normal(double bound, double deviation) {
  return deviation > 0 ? Initial{.deviation = deviation} : Initial{.bound = bound};
}

}  // namespace

Description::Description(mp_context_t context, const Form &form)
    : graph(mp::graph::create(context)), form_(form) {}

// ---------------------------------------------------------------------------- inputs and the loss

int32_t Description::image(const std::vector<int64_t> &extent) {
  std::vector<int64_t> all = {form_.batch};
  all.insert(all.end(), extent.begin(), extent.end());
  return x = graph.input("image", MP_FP32, all);
}

int32_t Description::symbols() {
  return x = graph.input("symbols", MP_DTYPE_NONE, {form_.batch, form_.steps});
}

void Description::loss(int32_t of) {
  logits = of;
  std::vector<int64_t> rows = extent_of(logits);
  rows.pop_back();
  labels = graph.input("labels", MP_DTYPE_NONE, rows);
  const std::vector<int32_t> outputs = graph.node_outputs("SoftmaxXent", "loss", {logits, labels},
                                                          3, {{"weight", form_.loss_weight}});
  mean_loss = outputs[0];
  row_loss = outputs[1];
  num_correct = outputs[2];
  graph.loss(mean_loss);
  if (form_.is_observed) graph.output(logits);
}

// ---------------------------------------------------------------------------- layers

int32_t Description::linear(const std::string &name, int32_t from, int64_t out, double deviation) {
  const int64_t in = extent_of(from).back();
  const int32_t w = parameter(name + ".w", {in, out}, uniform_or_normal(he_bound(in), deviation));
  const int32_t b = parameter(name + ".b", {out}, {});
  return observe(graph.node("Linear", name.c_str(), {from, w, b}));
}

int32_t Description::relu(int32_t from) {
  const std::string name = std::string(graph.get_tensor(from).name) + ".relu";
  return graph.node("Relu", name.c_str(), {from});
}

int32_t Description::conv2d(const std::string &name, int32_t from, int64_t channels, int64_t size) {
  const int64_t in = extent_of(from).back();
  const int32_t w =
      parameter(name + ".w", {channels, size, size, in}, {he_bound(size * size * in)});
  return observe(graph.node("Conv2D", name.c_str(), {from, w}, {{"pad", size / 2}}));
}

int32_t Description::batch_norm_relu(const std::string &name, int32_t from) {
  const int64_t channels = extent_of(from).back();
  const int32_t gamma = parameter(name + ".gamma", {channels}, {.value = 1});
  const int32_t beta = parameter(name + ".beta", {channels}, {});
  const int32_t mean = state(name + ".mean", channels, 0.0f);
  const int32_t variance = state(name + ".variance", channels, 1.0f);
  return observe(relu(graph.node("BatchNorm", name.c_str(), {from, gamma, beta, mean, variance})));
}

int32_t Description::max_pool(const std::string &name, int32_t from) {
  return observe(graph.node("MaxPool", name.c_str(), {from}));
}

int32_t Description::flatten(const std::string &name, int32_t from) {
  return graph.node("Reshape", name.c_str(), {from}, {{"extent", {0, -1}}});
}

int32_t Description::embedding(const std::string &name, int32_t from, int64_t vocabulary,
                               int64_t width, double deviation) {
  // Variance 1, like torch.nn.Embedding.
  const Initial initial = uniform_or_normal(std::sqrt(3.0), deviation);
  table_ = parameter(name + ".table", {vocabulary, width}, initial);
  return observe(graph.node("Embedding", name.c_str(), {table_, from}));
}

int32_t Description::tied_linear(const std::string &name, int32_t from) {
  return observe(graph.node("Linear", name.c_str(), {from, table_}, {{"transposed", 1}}));
}

int32_t Description::positions(const std::string &name, int32_t from, double deviation) {
  const int64_t width = extent_of(from).back();
  return add(name, from,
             parameter(name + ".table", {form_.steps, width}, {.deviation = deviation}));
}

int32_t Description::add(const std::string &name, int32_t from, int32_t other) {
  return graph.node("Add", name.c_str(), {from, other});
}

int32_t Description::layer_norm(const std::string &name, int32_t from) {
  const int64_t width = extent_of(from).back();
  const int32_t gamma = parameter(name + ".gamma", {width}, {.value = 1});
  return observe(
      graph.node("LayerNorm", name.c_str(), {from, gamma, parameter(name + ".beta", {width}, {})}));
}

int32_t Description::gelu(int32_t from) {
  return graph.node("Gelu", (graph.get_tensor(from).name + std::string(".gelu")).c_str(), {from});
}

int32_t Description::causal_attention(const std::string &name, int32_t from, int64_t heads) {
  return observe(graph.node("Attention", name.c_str(), {from}, {{"heads", heads}, {"causal", 1}}));
}

int32_t Description::last_step_lstm(const std::string &name, int32_t from, int64_t hidden) {
  return observe(
      graph.node_outputs("LSTM", name.c_str(), lstm_inputs(name, from, hidden, {}), 2)[1]);
}

int32_t Description::window_lstm(const std::string &name, int32_t from, int64_t hidden) {
  lengths = graph.input("lengths", MP_DTYPE_NONE, {form_.batch});
  Carried h = carry(name + ".h", hidden), c = carry(name + ".c", hidden);
  const std::vector<int32_t> outputs = graph.node_outputs(
      "LSTM", name.c_str(),
      lstm_inputs(name, from, hidden, {h.from_before, c.from_before, lengths}), 3);
  h.to_next = outputs[1];
  c.to_next = outputs[2];
  for (const Carried &each : {h, c}) {
    graph.output(each.to_next);
    carried.push_back(each);
  }
  return observe(outputs[0]);
}

std::vector<int32_t> Description::lstm_inputs(const std::string &name, int32_t from, int64_t hidden,
                                              const std::vector<int32_t> &others) {
  // Initialization of torch.nn.LSTM, without a special bias of the forget gate.
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  const int64_t rows = 4 * hidden;
  std::vector<int32_t> inputs = {
      from, parameter(name + ".w_ih", {rows, extent_of(from).back()}, {bound}),
      parameter(name + ".w_hh", {rows, hidden}, {bound}),
      parameter(name + ".b_ih", {rows}, {bound}), parameter(name + ".b_hh", {rows}, {bound})};
  inputs.insert(inputs.end(), others.begin(), others.end());
  return inputs;
}

// ---------------------------------------------------------------------------- tensors

int32_t Description::parameter(const std::string &name, const std::vector<int64_t> &extent,
                               const Initial &initial) {
  const int32_t tensor = graph.parameter(name.c_str(), extent);
  variables.push_back(
      {tensor, product(extent), static_cast<int32_t>(extent.size()), true, initial});
  return tensor;
}

int32_t Description::state(const std::string &name, int64_t numel, float value) {
  const int32_t tensor = graph.state(name.c_str(), {numel});
  variables.push_back({tensor, numel, 1, false, {.value = value}});
  return tensor;
}

Carried Description::carry(const std::string &name, int64_t hidden) {
  const std::vector<int64_t> extent = {form_.batch, hidden};
  return {graph.input(name.c_str(), MP_FP32, extent), kNone, product(extent)};
}

int32_t Description::observe(int32_t tensor) {
  if (form_.is_observed) {
    graph.keep_gradient(tensor);
    observed.push_back(tensor);
  }
  return tensor;
}

std::vector<int64_t> Description::extent_of(int32_t tensor) const {
  const mp_graph_tensor_t info = graph.get_tensor(tensor);
  return {info.extent, info.extent + info.rank};
}

}  // namespace mpdemo
