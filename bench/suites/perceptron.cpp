#include "perceptron.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "mpcore.hpp"

namespace mpbench {
namespace {

/// Uniform values in [-most, most].
std::vector<float> uniform(std::mt19937 &bits, int64_t count, float most) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values) value = most * (static_cast<float>(bits()) * 0x1p-31f - 1.0f);
  return values;
}

Buffer cast(const Machine &machine, const Buffer &values, mp_dtype_t dtype) {
  const int64_t count = values.bytes() / dtype_bytes(MP_FP32);
  Buffer low = make_buffer(machine.context(), count, dtype);
  machine.call(mp_cast, values.data(), MP_FP32, low.data(), dtype, count);
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
  x = machine.upload(uniform(bits, shape.batch * shape.width, 1.0f));
  std::vector<int32_t> classes(static_cast<size_t>(shape.batch));
  for (int32_t &one : classes)
    one = static_cast<int32_t>(bits() % static_cast<uint32_t>(shape.width));
  labels = machine.upload(classes);
}

// ---------------------------------------------------------------------------- as a graph

PerceptronStep graph_step(const Machine &machine, const PerceptronShape &shape, mp_dtype_t dtype,
                          const PerceptronStart &start) {
  const auto graph = std::make_shared<mp::graph>(mp::graph::create(machine.context()));
  const int32_t x = graph->input("x", MP_FP32, {shape.batch, shape.width});
  std::vector<int32_t> parameters;  // weight and bias of each GEMM
  int32_t y = x;
  for (int64_t i = 0; i < shape.products(); ++i) {
    const std::string name = text("fc%lld", static_cast<long long>(i));
    const int32_t weight = graph->parameter((name + ".w").c_str(), {shape.width, shape.width});
    const int32_t bias = graph->parameter((name + ".b").c_str(), {shape.width});
    parameters.insert(parameters.end(), {weight, bias});
    y = graph->node("Linear", name.c_str(), {y, weight, bias});
    if (i < shape.layers) y = graph->node("Relu", (name + "/relu").c_str(), {y});
  }
  const int32_t labels = graph->input("labels", MP_DTYPE_NONE, {shape.batch});
  // All three outputs are requested, to find which of them a step computes.
  const std::vector<int32_t> outputs = graph->node_outputs("SoftmaxXent", "loss", {y, labels}, 3);
  graph->loss(outputs[0]);

  mp::autocast policy;
  if (dtype != MP_FP32) {
    mp_autocast_config_t config = mp_autocast_config_default(dtype);
    config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT | MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;
    policy = mp::autocast::create(config);
    graph->autocast(policy.get());
  }
  graph->compile();

  const mp_stream_t stream = machine.stream();
  PerceptronStep step;
  for (size_t i = 0; i < parameters.size(); ++i) {
    graph->write(parameters[i], (i % 2 == 0 ? start.weights : start.biases)[i / 2].data(), stream);
    const mp_graph_tensor_t tensor = graph->get_tensor(parameters[i]);
    const int64_t count = i % 2 == 0 ? shape.width * shape.width : shape.width;
    step.written.push_back({std::string("gradient of ") + tensor.name, tensor.grad,
                            count * dtype_bytes(tensor.dtype_grad)});
  }
  graph->bind(x, start.x.data());
  graph->bind(labels, start.labels.data());
  machine.synchronize();

  constexpr int64_t kFloat = sizeof(float);
  const auto data = [&](size_t output) { return graph->get_tensor(outputs[output]).data; };
  step.written.push_back({"the loss", data(0), kFloat});
  step.written.push_back({"row losses", data(1), shape.batch * kFloat});
  step.written.push_back(
      {"number of correct rows", data(2), sizeof(int64_t), /*may_be_zero=*/true});

  std::istringstream lines(graph->describe());
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find("  mp_");
    if (begin == std::string::npos || line.starts_with("inference")) continue;
    step.calls.push_back(line.substr(begin + 2, line.find("  ", begin + 2) - begin - 2));
  }
  step.run = [graph, stream] {
    graph->forward(MP_GRAPH_MODE_TRAINING, stream);
    graph->backward(/*scaler=*/nullptr, stream);
  };
  return step;
}

// ---------------------------------------------------------------------------- by hand

PerceptronStep hand_step(const Machine &machine, const PerceptronShape &shape, mp_dtype_t dtype,
                         const PerceptronStart &start) {
  struct Layer {
    const void *weight;  ///< in the type that GEMMs read
    void *dw, *db, *y;
    mp_epilogue_t below;  ///< GEMM that computes the gradient before this layer's relu
  };
  const mp_context_t context = machine.context();
  const mp_stream_t stream = machine.stream();
  const auto memory = std::make_shared<std::vector<Buffer>>();
  const auto own = [&](Buffer buffer) { return memory->emplace_back(std::move(buffer)).data(); };
  const auto array = [&](int64_t count, mp_dtype_t type) {
    return own(make_buffer(context, count, type));
  };
  PerceptronStep step;
  const auto calls = std::make_shared<std::vector<std::function<void()>>>();
  const auto add = [&](const char *name, std::function<void()> call) {
    step.calls.emplace_back(name);
    calls->push_back(std::move(call));
  };

  const int64_t batch = shape.batch, width = shape.width, count = batch * width;
  const mp_gemm_desc_t forward = mp_gemm_desc_default(batch, width, width, dtype, dtype);
  const mp_gemm_desc_t row_sum = mp_gemm_desc_default(1, width, batch, dtype, MP_FP32);
  mp_gemm_desc_t data_gradient = forward;
  data_gradient.op_b = MP_OP_T;
  data_gradient.ld_b = width;
  mp_gemm_desc_t weight_gradient = mp_gemm_desc_default(width, width, batch, dtype, dtype);
  weight_gradient.op_a = MP_OP_T;
  weight_gradient.ld_a = width;
  int64_t workspace_bytes = 0;
  alignas(16) float any;  // queries read only its address
  mp_epilogue_t sums = mp_epilogue_default();
  sums.dbias = &any;
  for (const mp_gemm_desc_t &desc : {forward, data_gradient, weight_gradient, row_sum})
    workspace_bytes =
        std::max(workspace_bytes, bytes_from(mp_gemm_workspace_size, context, &desc, &sums));
  void *const workspace = own(Buffer(context, workspace_bytes));
  const auto multiply = [&](const mp_gemm_desc_t &desc, const void *a, const void *b, void *d,
                            const std::optional<mp_epilogue_t> &epilogue) {
    add("mp_gemm", [=] {
      check(mp_gemm(context, &desc, a, b, nullptr, d, epilogue ? &*epilogue : nullptr, workspace,
                    static_cast<size_t>(workspace_bytes), stream));
    });
  };

  const void *x = start.x.data();
  if (dtype != MP_FP32) {
    void *const low_x = array(count, dtype);
    add("mp_cast", [=] { check(mp_cast(context, x, MP_FP32, low_x, dtype, count, stream)); });
    x = low_x;
  }
  std::vector<Layer> layers;
  for (size_t i = 0; i < start.weights.size(); ++i) {
    const void *const below = i == 0 ? x : layers.back().y;
    Buffer master = machine.upload(start.weights[i]);
    Layer layer{.weight = own(dtype == MP_FP32 ? std::move(master) : cast(machine, master, dtype)),
                .dw = array(width * width, dtype),
                .db = array(width, MP_FP32),
                .y = array(count, dtype),
                .below = mp_epilogue_default()};
    layer.below.activation = MP_ACT_DRELU;
    layer.below.aux = layer.y;
    layer.below.dbias = static_cast<float *>(layer.db);
    mp_epilogue_t epilogue = mp_epilogue_default();
    epilogue.bias = own(machine.upload(start.biases[i]));
    epilogue.dtype_bias = MP_FP32;
    epilogue.activation = i + 1 == start.weights.size() ? MP_ACT_NONE : MP_ACT_RELU;
    multiply(forward, below, layer.weight, layer.y, epilogue);
    step.written.push_back({"", layer.dw, width * width * dtype_bytes(dtype)});
    step.written.push_back({"", layer.db, width * dtype_bytes(MP_FP32)});
    layers.push_back(layer);
  }

  void *dz = array(count, dtype), *dz_below = array(count, dtype);  // used alternately
  mp_xent_tensors_t t;
  MP_INIT_STRUCT(&t);
  t.x = layers.back().y;
  t.labels = start.labels.data();
  t.loss = static_cast<float *>(array(1, MP_FP32));
  t.row_loss = static_cast<float *>(array(batch, MP_FP32));
  t.correct = static_cast<int64_t *>(own(Buffer(context, sizeof(int64_t))));
  t.dx = dz;
  // mp_softmax_xent adds to the count.
  add("mp_memset", [=] { check(mp_memset(context, t.correct, 0, sizeof *t.correct, stream)); });
  add("mp_softmax_xent", [=, desc = mp_xent_desc_default(batch, width, dtype)] {
    check(mp_softmax_xent(context, &desc, &t, stream));
  });
  const std::vector<float> ones(static_cast<size_t>(batch), 1.0f);
  multiply(row_sum, own(cast(machine, machine.upload(ones), dtype)), dz, layers.back().db, {});
  for (size_t i = layers.size() - 1; i > 0; --i) {
    multiply(weight_gradient, layers[i - 1].y, dz, layers[i].dw, {});
    multiply(data_gradient, dz, layers[i].weight, dz_below, layers[i - 1].below);
    std::swap(dz, dz_below);
  }
  multiply(weight_gradient, x, dz, layers.front().dw, {});
  step.written.push_back({"", t.loss, sizeof *t.loss});
  step.written.push_back({"", t.row_loss, batch * static_cast<int64_t>(sizeof *t.row_loss)});
  step.written.push_back({"", t.correct, sizeof *t.correct});
  machine.synchronize();
  step.run = [memory, calls] {
    for (const std::function<void()> &call : *calls) call();
  };
  return step;
}

}  // namespace mpbench
