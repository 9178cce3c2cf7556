// Autocast and graphs in mixed precision, the part of the API with the most allocations.
#include <array>

#include "catalog.h"
#include "graph_builder.h"

namespace mptest {

namespace {

constexpr mp_autocast_format_t kFormats[] = {MP_AUTOCAST_FORMAT_TEXT, MP_AUTOCAST_FORMAT_JSON,
                                             MP_AUTOCAST_FORMAT_DOT};

/// Rewrites x -> MatMul(w) -> MyOp -> Softmax.
void decide_types(Caller &c) {
  const mp_autocast_t policy = make_autocast(c, MP_FP16);
  const char *const ops[] = {"MyOp", "YourOp"};
  CALL(c, mp_autocast_set_class, policy, ops, 2u, MP_OP_CLASS_ALLOW);
  CALL(c, mp_autocast_set_nodes, policy, "block[0-9]/*", MP_OP_CLASS_DENY);
  for (const char *const op : {"Conv2D", "Softmax", "MyOp", "no such thing"})
    c.record_value(mp_autocast_get_class(policy, op));
  const char *disabled_reason = nullptr;
  CALL(c, mp_autocast_get_disabled_reason, policy, c.context(), &disabled_reason);
  c.record(disabled_reason != nullptr ? disabled_reason : "");

  const char *const node_op[] = {"MatMul", "MyOp", "Softmax"};
  const char *const node_name[] = {"first/product", "second", "block1/softmax"};
  const int32_t input_offsets[] = {0, 2, 3, 4}, input_tensor[] = {0, 1, 2, 3};
  const int32_t producer[] = {-1, -1, 0, 1, 2};
  const uint8_t dtype[] = {MP_FP32, MP_FP32, MP_FP32, MP_FP32, MP_FP32};
  const uint8_t role[] = {MP_TENSOR_ROLE_ACTIVATION, MP_TENSOR_ROLE_PARAMETER,
                          MP_TENSOR_ROLE_ACTIVATION, MP_TENSOR_ROLE_ACTIVATION,
                          MP_TENSOR_ROLE_OUTPUT};
  auto graph = initialized<mp_autocast_graph_t>();
  graph.num_nodes = 3;
  graph.num_tensors = 5;
  graph.node_op = node_op;
  graph.node_name = node_name;
  graph.input_offsets = input_offsets;
  graph.input_tensor = input_tensor;
  graph.tensor_producer = producer;
  graph.tensor_dtype = dtype;
  graph.tensor_role = role;
  std::array<uint8_t, 5> tensor_dtype{};
  std::array<uint8_t, 3> node_dtype{}, reason{};
  std::array<int32_t, 4> input_cast{};
  std::array<mp_autocast_cast_t, 9> casts{};
  auto result = initialized<mp_autocast_result_t>();
  result.tensor_dtype = tensor_dtype.data();
  result.node_dtype = node_dtype.data();
  result.input_cast = input_cast.data();
  result.casts = casts.data();
  result.node_reason = reason.data();
  CALL(c, mp_autocast_rewrite, policy, c.context(), &graph, &result);
  c.record(&result.num_casts, 3 * sizeof result.num_casts);
  c.record_value(tensor_dtype);
  c.record_value(reason);
  c.record_value(casts);
  for (const mp_autocast_format_t format : kFormats)
    RECORD_TEXT(c, mp_autocast_explain, policy, &graph, &result, format);
  const std::array<uint8_t, 2> given = {MP_FP32, MP_FP16};
  std::array<uint8_t, 2> cast_to{};
  mp_dtype_t output = MP_DTYPE_NONE;
  CALL(c, mp_autocast_op, policy, "MatMul", given.data(), 2u, cast_to.data(), &output);
  c.record_value(output);
  c.record_value(cast_to);
  DESTROY(c, mp_autocast_destroy, policy);
}

// A rejected input must not set the batch size.
void begin_graph(Caller &c) {
  const GraphBuilder builder(c);
  int64_t batch = 4;
  int32_t tensor = -1;
  c.call_again([&] { batch = 5; }, "mp_graph_add_input", mp_graph_add_input, builder.graph(),
               "a name that is long enough", MP_FP32, 1, &batch, &tensor);
  c.record_value(tensor);
  DESTROY(c, mp_graph_destroy, builder.graph());
}

/// A graph with its policy and data.
struct Network : GraphBuilder {
  Caller &c;
  mp_autocast_t policy;
  std::vector<int32_t> states;

  explicit Network(Caller &caller)
      : GraphBuilder(caller), c(caller), policy(make_autocast(caller, MP_FP16)) {}

  void write_parameters() const {
    for (const int32_t parameter : parameters) {
      const float *const values = c.floats(numel_of(info(parameter)));
      CALL(c, mp_graph_write, graph(), parameter, values, nullptr);
    }
  }
  /// Backward consumes the data of forward, so forward is repeated, with the masks of its step and
  /// its states.
  void pass(mp_scaler_t scaler) const {
    int64_t step = 0;
    CALL(c, mp_graph_get_step_sync, graph(), &step, nullptr);
    CALL(c, mp_graph_set_step_sync, graph(), step, nullptr);
    const std::vector<Copy> saved = copies_of_states();
    const auto put_back = [&] {
      (void)mp_graph_set_step_sync(graph(), step, nullptr);
      for (const Copy &copy : saved)
        (void)mp_memcpy(c.context(), copy.data, copy.values, copy.bytes, nullptr);
    };
    c.call_again(put_back, "mp_graph_forward", mp_graph_forward, graph(), MP_GRAPH_MODE_TRAINING,
                 nullptr);
    const auto forward_again = [&] {
      put_back();
      (void)mp_graph_forward(graph(), MP_GRAPH_MODE_TRAINING, nullptr);
    };
    c.call_again(forward_again, "mp_graph_backward", mp_graph_backward, graph(), scaler, nullptr);
  }
  void record_tensor(int32_t tensor) const {
    const mp_graph_tensor_t t = info(tensor);
    c.record_device(t.data, static_cast<size_t>(numel_of(t)) * mp_dtype_size(t.dtype));
  }
  void describe() const {
    RECORD_TEXT(c, mp_graph_describe, graph());
    for (const mp_autocast_format_t format : kFormats)
      RECORD_TEXT(c, mp_graph_explain, graph(), format);
    auto memory = initialized<mp_graph_memory_t>();
    CALL(c, mp_graph_get_memory, graph(), &memory);
    c.record_value(memory);
  }
  /// Records all parameters, gradients and states.
  void finish() const {
    for (const int32_t parameter : parameters) {
      const mp_graph_tensor_t tensor = info(parameter);
      const auto count = static_cast<size_t>(numel_of(tensor));
      c.record_device(tensor.grad, count * mp_dtype_size(tensor.dtype_grad));
      c.record_device(tensor.data, count * sizeof(float));
    }
    for (const int32_t state : states) record_tensor(state);
    destroy();
  }
  void destroy() const {
    DESTROY(c, mp_graph_destroy, graph());
    DESTROY(c, mp_autocast_destroy, policy);
  }

 private:
  /// Values of a state in device memory.
  struct Copy {
    void *data, *values;
    size_t bytes;
  };
  std::vector<Copy> copies_of_states() const {
    std::vector<Copy> copies;
    for (const int32_t state : states) {
      const mp_graph_tensor_t tensor = info(state);
      const size_t bytes = static_cast<size_t>(numel_of(tensor)) * mp_dtype_size(tensor.dtype);
      copies.push_back({tensor.data, c.scratch(bytes), bytes});
      CALL(c, mp_memcpy, c.context(), copies.back().values, tensor.data, bytes, nullptr);
    }
    return copies;
  }
};

/// A compiled convolutional network.
struct Classifier : Network {
  static constexpr int64_t kRows = 4, kSide = 4, kClasses = 10;
  int32_t x, labels, offset, logits, mean_loss;

  explicit Classifier(Caller &caller) : Network(caller) {
    x = input("x", MP_FP32, {kRows, kSide, kSide, 8});
    labels = input("labels", MP_DTYPE_NONE, {kRows});
    offset = input("offset", MP_DTYPE_NONE, {});
    const int32_t filter = parameter("filter", {8, 3, 3, 8});
    const int32_t gamma = parameter("gamma", {8}), beta = parameter("beta", {8});
    const int32_t mean = state("mean", {8}), variance = state("variance", {8});
    states = {mean, variance};
    const int32_t w = parameter("w", {32, kClasses}), bias = parameter("bias", {kClasses});
    const int32_t features = node("Conv2D", "conv", {x, filter}, {mp_graph_int("pad", 1)});
    const int32_t normal = node("BatchNorm", "norm", {features, gamma, beta, mean, variance});
    const int32_t pooled = node("MaxPool", "pool", {node("Relu", "relu", {normal})});
    const int64_t extent[] = {0, 32};
    const int32_t flat = node("Reshape", "flat", {pooled}, {mp_graph_ints("extent", extent, 2)});
    const int32_t dropped = node("Dropout", "dropout", {flat}, {mp_graph_float("p", 0.25)});
    const int32_t other = node("Dropout", "other", {flat, offset}, {mp_graph_float("p", 0.25)});
    const int32_t even = node("LayerNorm", "even", {node("Add", "sum", {dropped, other})});
    logits = node("Linear", "logits", {even, w, bias});
    CALL(c, mp_graph_add_output, graph(), logits);
    CALL(c, mp_graph_keep_gradient, graph(), logits);
    mean_loss = node("SoftmaxXent", "loss", {logits, labels});
    loss(mean_loss);
    compile(policy);
  }
};

/// A compiled recurrent network.
struct LanguageModel : Network {
  int32_t words, labels, mean_loss;

  explicit LanguageModel(Caller &caller) : Network(caller) {
    words = input("words", MP_DTYPE_NONE, {2, 3});
    labels = input("labels", MP_DTYPE_NONE, {2, 3});
    const int32_t table = parameter("table", {5, 8});
    const int32_t w_ih = parameter("w_ih", {32, 8}), w_hh = parameter("w_hh", {32, 8});
    const int32_t w = parameter("w", {8, 5});
    const int32_t y =
        node("LSTM", "lstm", {node("Embedding", "embedding", {table, words}), w_ih, w_hh});
    const int32_t logits = node("Linear", "logits", {node("Tanh", "tanh", {y}), w});
    mean_loss = node("SoftmaxXent", "loss", {logits, labels});
    loss(mean_loss);
    compile(policy);
  }
};

template <class Graph>
void compile_graph(Caller &c) {
  const Graph net(c);
  net.describe();
  net.destroy();
}

void train_classifier(Caller &c) {
  c.pause_faults();
  const Classifier net(c);
  c.resume_faults();
  net.write_parameters();
  net.bind(net.x, c.floats(net.kRows * net.kSide * net.kSide * 8));
  net.bind(net.labels, c.indices(net.kRows, net.kClasses));
  net.bind(net.offset, c.dropout_offset());
  mp_tensor_list_t grads = nullptr, master = nullptr, model = nullptr;
  CALL(c, mp_graph_get_lists, net.graph(), &grads, &master, &model);
  mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 0.125f);
  group.beta1 = 0.0f;  // no momentum
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_SGD);
  desc.groups = &group;
  desc.grads = grads;
  desc.master = master;
  desc.model = model;
  mp_optimizer_t optimizer = nullptr;
  CREATE(c, mp_optimizer_create, optimizer, c.context(), &desc);
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  mp_scaler_t scaler = nullptr;
  CREATE(c, mp_scaler_create, scaler, c.context(), &config);
  for (const int64_t batch : {net.kRows, net.kRows - 1}) {
    CALL(c, mp_graph_set_batch, net.graph(), batch);
    net.pass(scaler);
    net.record_tensor(net.mean_loss);
    CALL(c, mp_scale_step, optimizer, scaler, nullptr, nullptr);
  }
  CALL(c, mp_graph_forward, net.graph(), MP_GRAPH_MODE_INFERENCE, nullptr);
  net.record_tensor(net.logits);
  net.record_tensor(net.mean_loss);
  DESTROY(c, mp_optimizer_destroy, optimizer);
  DESTROY(c, mp_scaler_destroy, scaler);
  net.finish();
}

void train_language_model(Caller &c) {
  c.pause_faults();
  const LanguageModel net(c);
  c.resume_faults();
  net.write_parameters();
  net.bind(net.words, c.indices(6, 5));
  net.bind(net.labels, c.indices(6, 5));
  net.pass(nullptr);
  net.record_tensor(net.mean_loss);
  net.finish();
}

/// The caller computes the loss and its gradient.
void seed_gradient(Caller &c) {
  c.pause_faults();
  Network net(c);
  const int32_t x = net.input("x", MP_FP32, {4, 8}), w = net.parameter("w", {8, 3});
  const int32_t y = net.node("Linear", "y", {x, w});
  int32_t dy = -1;
  c.resume_faults();
  CALL(c, mp_graph_seed_gradient, net.graph(), y, &dy);
  CALL(c, mp_graph_measure_kernels, net.graph(), 0);
  c.pause_faults();
  net.compile(net.policy);
  c.resume_faults();
  net.write_parameters();
  net.bind(x, c.floats(4 * 8));
  net.bind(dy, c.floats(4 * 3));
  net.pass(nullptr);
  net.finish();
}

}  // namespace

Catalog graph_calls() {
  return {{"autocast", decide_types},
          {"graph: first input", begin_graph},
          {"graph: convolutional network", compile_graph<Classifier>},
          {"graph: training of the convolutional network", train_classifier},
          {"graph: recurrent network", compile_graph<LanguageModel>},
          {"graph: training of the recurrent network", train_language_model},
          {"graph: gradient of the caller", seed_gradient}};
}

}  // namespace mptest
