// Scenarios of autocast and of graphs in mixed precision.
#include <array>
#include <initializer_list>
#include <utility>

#include "scenarios.h"

namespace mptest::faults {

namespace {

mp_autocast_t make_policy(Run &run) {
  mp_autocast_config_t config = mp_autocast_config_default(MP_FP16);
  config.flags = MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE;
  mp_autocast_t policy = nullptr;
  FAULTY_CREATE(run, mp_autocast_create, policy, &config);
  return policy;
}

template <class Write>
void record_text(Run &run, const char *function, const Write &write) {
  std::array<char, 1 << 14> text{};
  size_t bytes = 0;
  run.call(function, [&] { return write(nullptr, &bytes); });
  bytes = text.size();
  run.call(function, [&] { return write(text.data(), &bytes); });
  run.record(text.data(), bytes);
}

/// A graph under construction, the part of the API with the most allocations.
struct Network {
  Run &run;
  mp_graph_t graph = nullptr;

  explicit Network(Run &r) : run(r) { FAULTY_CREATE(run, mp_graph_create, graph, run.context()); }

  int32_t input(const char *name, mp_dtype_t dtype, std::initializer_list<int64_t> extent) const {
    int32_t tensor = -1;
    FAULTY_CALL(run, mp_graph_add_input, graph, name, dtype, static_cast<int32_t>(extent.size()),
                extent.begin(), &tensor);
    return record(tensor);
  }
  int32_t parameter(const char *name, std::initializer_list<int64_t> extent) const {
    int32_t tensor = -1;
    FAULTY_CALL(run, mp_graph_add_parameter, graph, name, static_cast<int32_t>(extent.size()),
                extent.begin(), &tensor);
    return record(tensor);
  }
  int32_t state(const char *name, std::initializer_list<int64_t> extent) const {
    int32_t tensor = -1;
    FAULTY_CALL(run, mp_graph_add_state, graph, name, static_cast<int32_t>(extent.size()),
                extent.begin(), &tensor);
    return record(tensor);
  }
  int32_t node(const char *op, const char *name, std::initializer_list<int32_t> inputs,
               std::initializer_list<mp_graph_attribute_t> attributes = {}) const {
    int32_t tensor = -1;
    FAULTY_CALL(run, mp_graph_add_node, graph, op, name, inputs.begin(),
                static_cast<uint32_t>(inputs.size()), attributes.begin(),
                static_cast<uint32_t>(attributes.size()), &tensor, 1);
    return record(tensor);
  }
  void bind(int32_t tensor, const void *data) const {
    FAULTY_CALL(run, mp_graph_bind, graph, tensor, data);
  }
  void write(int32_t tensor, int64_t count) const {
    const float *const values = run.floats(count, tensor);
    FAULTY_CALL(run, mp_graph_write, graph, tensor, values, nullptr);
  }
  /// Backward consumes the data of forward, so forward is repeated, with the masks of its step.
  void pass(mp_scaler_t scaler) const {
    int64_t step = 0;
    FAULTY_CALL(run, mp_graph_get_step_sync, graph, &step, nullptr);
    FAULTY_CALL(run, mp_graph_set_step_sync, graph, step, nullptr);
    const auto forward = [&] { return mp_graph_forward(graph, MP_GRAPH_MODE_TRAINING, nullptr); };
    run.call("mp_graph_forward", forward);
    run.call(
        "mp_graph_backward", [&] { return mp_graph_backward(graph, scaler, nullptr); },
        [&] {
          (void)mp_graph_set_step_sync(graph, step, nullptr);
          return forward();
        });
  }
  void record_gradient(int32_t tensor, int64_t count) const {
    mp_graph_tensor_t info;
    MP_INIT_STRUCT(&info);
    FAULTY_CALL(run, mp_graph_get_tensor, graph, tensor, &info);
    run.record_device(info.grad, static_cast<size_t>(count) * mp_dtype_size(info.dtype_grad));
    run.record_device(info.data, static_cast<size_t>(count) * sizeof(float));
  }
  void compile(int32_t loss, mp_autocast_t policy) const {
    FAULTY_CALL(run, mp_graph_set_loss, graph, loss);
    FAULTY_CALL(run, mp_graph_set_autocast, graph, policy);
    FAULTY_CALL(run, mp_graph_compile, graph);
  }
  void destroy(mp_autocast_t policy) const {
    FAULTY_DESTROY(run, mp_graph_destroy, graph);
    FAULTY_DESTROY(run, mp_autocast_destroy, policy);
  }
  void tell() const {
    record_text(run, "mp_graph_describe",
                [&](char *text, size_t *bytes) { return mp_graph_describe(graph, text, bytes); });
    for (const mp_autocast_format_t form :
         {MP_AUTOCAST_FORMAT_TEXT, MP_AUTOCAST_FORMAT_JSON, MP_AUTOCAST_FORMAT_DOT})
      record_text(run, "mp_graph_explain", [&](char *text, size_t *bytes) {
        return mp_graph_explain(graph, form, text, bytes);
      });
    mp_graph_memory_t memory;
    MP_INIT_STRUCT(&memory);
    FAULTY_CALL(run, mp_graph_get_memory, graph, &memory);
    run.record(&memory, sizeof memory);
  }

 private:
  int32_t record(int32_t tensor) const {
    run.record(&tensor, sizeof tensor);
    return tensor;
  }
};

}  // namespace

void decide_types(Run &run) {
  const mp_autocast_t policy = make_policy(run);
  const char *const ops[] = {"MyOp", "YourOp"};
  FAULTY_CALL(run, mp_autocast_set_class, policy, ops, 2, MP_OP_CLASS_ALLOW);
  FAULTY_CALL(run, mp_autocast_set_nodes, policy, "block[0-9]/*", MP_OP_CLASS_DENY);
  const char *closed = nullptr;
  FAULTY_CALL(run, mp_autocast_get_disabled_reason, policy, run.context(), &closed);

  // x -> MatMul(w) -> MyOp -> Softmax
  const char *const node_op[] = {"MatMul", "MyOp", "Softmax"};
  const char *const node_name[] = {"first/product", "second", "block1/softmax"};
  const int32_t input_offsets[] = {0, 2, 3, 4}, input_tensor[] = {0, 1, 2, 3};
  const int32_t producer[] = {-1, -1, 0, 1, 2};
  const uint8_t dtype[] = {MP_FP32, MP_FP32, MP_FP32, MP_FP32, MP_FP32};
  const uint8_t role[] = {MP_TENSOR_ROLE_ACTIVATION, MP_TENSOR_ROLE_PARAMETER,
                          MP_TENSOR_ROLE_ACTIVATION, MP_TENSOR_ROLE_ACTIVATION,
                          MP_TENSOR_ROLE_OUTPUT};
  mp_autocast_graph_t graph;
  MP_INIT_STRUCT(&graph);
  graph.num_nodes = 3;
  graph.num_tensors = 5;
  graph.node_op = node_op;
  graph.node_name = node_name;
  graph.input_offsets = input_offsets;
  graph.input_tensor = input_tensor;
  graph.tensor_producer = producer;
  graph.tensor_dtype = dtype;
  graph.tensor_role = role;
  uint8_t tensor_dtype[5] = {}, node_dtype[3] = {}, why[3] = {};
  int32_t input_cast[4] = {};
  mp_autocast_cast_t casts[9] = {};
  mp_autocast_result_t result;
  MP_INIT_STRUCT(&result);
  result.tensor_dtype = tensor_dtype;
  result.node_dtype = node_dtype;
  result.input_cast = input_cast;
  result.casts = casts;
  result.node_reason = why;
  FAULTY_CALL(run, mp_autocast_rewrite, policy, run.context(), &graph, &result);
  run.record(&result.num_casts, 3 * sizeof result.num_casts);
  run.record(tensor_dtype, sizeof tensor_dtype);
  run.record(why, sizeof why);
  run.record(casts, sizeof casts);
  for (const mp_autocast_format_t form :
       {MP_AUTOCAST_FORMAT_TEXT, MP_AUTOCAST_FORMAT_JSON, MP_AUTOCAST_FORMAT_DOT})
    record_text(run, "mp_autocast_explain", [&](char *text, size_t *bytes) {
      return mp_autocast_explain(policy, &graph, &result, form, text, bytes);
    });
  const uint8_t given[] = {MP_FP32, MP_FP16};
  uint8_t cast_to[2] = {};
  mp_dtype_t output = MP_DTYPE_NONE;
  FAULTY_CALL(run, mp_autocast_op, policy, "MatMul", given, 2, cast_to, &output);
  run.record(&output, sizeof output);
  FAULTY_DESTROY(run, mp_autocast_destroy, policy);
}

namespace {

/// A convolutional network, before mp_graph_compile.
struct Classifier : Network {
  static constexpr int64_t kRows = 4, kSide = 4, kClasses = 10;
  mp_autocast_t policy;
  int32_t x, labels, filter, gamma, beta, w, bias;

  explicit Classifier(Run &r) : Network(r), policy(make_policy(r)) {
    x = input("x", MP_FP32, {kRows, kSide, kSide, 8});
    labels = input("labels", MP_DTYPE_NONE, {kRows});
    filter = parameter("filter", {8, 3, 3, 8});
    gamma = parameter("gamma", {8}), beta = parameter("beta", {8});
    const int32_t mean = state("mean", {8}), variance = state("variance", {8});
    w = parameter("w", {32, kClasses}), bias = parameter("bias", {kClasses});
    const int32_t features = node("Conv2D", "conv", {x, filter}, {mp_graph_int("pad", 1)});
    const int32_t normal = node("BatchNorm", "norm", {features, gamma, beta, mean, variance});
    const int32_t pooled = node("MaxPool", "pool", {node("Relu", "relu", {normal})});
    const int64_t extent[] = {0, 32};
    const int32_t flat = node("Reshape", "flat", {pooled}, {mp_graph_ints("extent", extent, 2)});
    const int32_t dropped = node("Dropout", "dropout", {flat}, {mp_graph_float("p", 0.25)});
    const int32_t even = node("LayerNorm", "even", {node("Add", "sum", {flat, dropped})});
    const int32_t logits = node("Linear", "logits", {even, w, bias});
    const int32_t loss = node("SoftmaxXent", "loss", {logits, labels});
    FAULTY_CALL(run, mp_graph_add_output, graph, logits);
    FAULTY_CALL(run, mp_graph_keep_gradient, graph, logits);
    compile(loss, policy);
  }
};

/// A recurrent network, before mp_graph_compile.
struct LanguageModel : Network {
  mp_autocast_t policy;
  int32_t words, labels, table, w_ih, w_hh, w;

  explicit LanguageModel(Run &r) : Network(r), policy(make_policy(r)) {
    words = input("words", MP_DTYPE_NONE, {2, 3});
    labels = input("labels", MP_DTYPE_NONE, {2, 3});
    table = parameter("table", {5, 8});
    w_ih = parameter("w_ih", {32, 8}), w_hh = parameter("w_hh", {32, 8});
    w = parameter("w", {8, 5});
    const int32_t y =
        node("LSTM", "lstm", {node("Embedding", "embedding", {table, words}), w_ih, w_hh});
    const int32_t logits = node("Linear", "logits", {node("Tanh", "tanh", {y}), w});
    compile(node("SoftmaxXent", "loss", {logits, labels}), policy);
  }
};

}  // namespace

// A rejected input must not set the batch size.
void begin_graph(Run &run) {
  const Network net(run);
  int64_t batch = 4;
  int32_t tensor = -1;
  run.call(
      "mp_graph_add_input",
      [&] {
        return mp_graph_add_input(net.graph, "a name that is long enough", MP_FP32, 1, &batch,
                                  &tensor);
      },
      [&] { batch = 5; });
  run.record(&tensor, sizeof tensor);
  FAULTY_DESTROY(run, mp_graph_destroy, net.graph);
}

void compile_graph(Run &run) {
  const Classifier net(run);
  net.tell();
  net.destroy(net.policy);
}

void train_graph(Run &run) {
  run.spare();
  const Classifier net(run);
  run.spare_no_more();
  const std::pair<int32_t, int64_t> sizes[] = {
      {net.filter, 576}, {net.gamma, 8}, {net.beta, 8}, {net.w, 320}, {net.bias, net.kClasses}};
  for (const auto &[tensor, count] : sizes) net.write(tensor, count);
  net.bind(net.x, run.floats(net.kRows * net.kSide * net.kSide * 8, 3));
  net.bind(net.labels, run.integers({1, 0, 9, 4}));
  mp_tensor_list_t grads = nullptr, master = nullptr, model = nullptr;
  FAULTY_CALL(run, mp_graph_get_lists, net.graph, &grads, &master, &model);
  mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 0.125f);
  group.beta1 = 0.0f;  // without momentum
  mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_SGD);
  desc.groups = &group;
  desc.grads = grads;
  desc.master = master;
  desc.model = model;
  mp_optimizer_t optimizer = nullptr;
  FAULTY_CREATE(run, mp_optimizer_create, optimizer, run.context(), &desc);
  const mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  mp_scaler_t scaler = nullptr;
  FAULTY_CREATE(run, mp_scaler_create, scaler, run.context(), &config);
  for (const int64_t batch : {net.kRows, net.kRows - 1}) {
    FAULTY_CALL(run, mp_graph_set_batch, net.graph, batch);
    net.pass(scaler);
    FAULTY_CALL(run, mp_scale_step, optimizer, scaler, nullptr, nullptr);
  }
  FAULTY_CALL(run, mp_graph_forward, net.graph, MP_GRAPH_MODE_INFERENCE, nullptr);
  for (const auto &[tensor, count] : sizes) net.record_gradient(tensor, count);
  FAULTY_DESTROY(run, mp_optimizer_destroy, optimizer);
  FAULTY_DESTROY(run, mp_scaler_destroy, scaler);
  net.destroy(net.policy);
}

void compile_recurrent_graph(Run &run) {
  const LanguageModel net(run);
  net.tell();
  net.destroy(net.policy);
}

void train_recurrent_graph(Run &run) {
  run.spare();
  const LanguageModel net(run);
  run.spare_no_more();
  net.write(net.table, 40);
  for (const int32_t matrix : {net.w_ih, net.w_hh}) net.write(matrix, 256);
  net.write(net.w, 40);
  net.bind(net.words, run.integers({0, 1, 2, 3, 4, 0}));
  net.bind(net.labels, run.integers({1, 2, 3, 4, 0, 1}));
  net.pass(nullptr);
  net.record_gradient(net.table, 40);
  net.record_gradient(net.w_hh, 256);
  net.destroy(net.policy);
}

}  // namespace mptest::faults
