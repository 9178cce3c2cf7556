// Graphs through mpcore.hpp: a perceptron trained in fp32 and in mixed precision.
#include "cpp.h"

#include <array>
#include <type_traits>

namespace {

static_assert(!std::is_copy_constructible_v<mp::graph>);
static_assert(std::is_nothrow_move_constructible_v<mp::graph>);

constexpr int32_t kBatch = 16, kIn = 8, kHidden = 16, kClasses = 4;
constexpr int kSteps = 20;

/// Small multiples of a step that every type represents.
std::vector<float> numbers(int32_t count, int32_t seed, float step) {
  std::vector<float> values;
  for (int32_t i = 0; i < count; i++)
    values.push_back(static_cast<float>((i * 7 + i / 3 + seed * 5) % 9 - 4) * step);
  return values;
}

mp::autocast make_policy(mp_dtype_t low = MP_FP16, uint32_t flags = 0) {
  mp_autocast_config_t config = mp_autocast_config_default(low);
  config.flags = MP_AUTOCAST_FLAG_NO_ENVIRONMENT | MP_AUTOCAST_FLAG_IGNORE_PERFORMANCE | flags;
  return mp::autocast::create(config);
}

/// Linear, ReLU, Linear, cross-entropy on the host target; device memory is host memory.
struct Perceptron {
  const mp::context context = mp::context::create(on_host());
  std::vector<float> x = numbers(kBatch * kIn, 1, 0.5f);
  std::array<int32_t, kBatch> labels{};
  mp::graph graph = mp::graph::create(context);
  int32_t input, targets, w1, b1, w2, b2, logits;
  std::vector<int32_t> loss;  ///< loss, row_loss, correct

  explicit Perceptron(mp_autocast_t policy = nullptr) {
    describe();
    if (policy != nullptr) graph.autocast(policy);
    graph.measure_kernels(0);
    graph.compile();
    graph.write(w1, numbers(kIn * kHidden, 2, 0.0625f).data());
    graph.write(w2, numbers(kHidden * kClasses, 3, 0.0625f).data());
    for (size_t i = 0; i < labels.size(); i++) labels[i] = static_cast<int32_t>(i % kClasses);
    graph.bind(input, x.data());
    graph.bind(targets, labels.data());
  }

  void describe() {
    input = graph.input("x", MP_FP32, {kBatch, kIn});
    w1 = graph.parameter("w1", {kIn, kHidden});
    b1 = graph.parameter("b1", {kHidden});
    w2 = graph.parameter("w2", {kClasses, kHidden});
    b2 = graph.parameter("b2", {kClasses});
    const int32_t fc1 = graph.node("Linear", "fc1", {input, w1, b1});
    const int32_t relu = graph.node("Relu", "relu", {fc1});
    logits = graph.node("Linear", "fc2", {relu, w2, b2}, {{"transposed", 1}});
    graph.output(logits);
    graph.keep_gradient(logits);
    targets = graph.input("labels", MP_DTYPE_NONE, {kBatch});
    loss = graph.node_outputs("SoftmaxXent", "loss", {logits, targets}, 3,
                              {{"label_smoothing", 0.125}, {"weight", 1}});
    graph.loss(loss[0]);
  }

  mp::optimizer make_sgd() const {
    mp_param_group_t group = mp_param_group_default(MP_OPT_SGD, 0.5f);
    group.beta1 = 0.0f;
    mp_optimizer_desc_t desc = mp_optimizer_desc_default(MP_OPT_SGD);
    desc.groups = &group;
    const mp::graph_lists lists = graph.lists();
    desc.grads = lists.grads;
    desc.master = lists.master;
    desc.model = lists.model;
    return mp::optimizer::create(context, desc);
  }

  float loss_now() const { return *static_cast<const float *>(graph.get_tensor(loss[0]).data); }
};

/// First and last loss of a training.
std::array<float, 2> train(const Perceptron &net, mp_dtype_t low) {
  const mp::scaler scaler = mp::scaler::create(net.context, mp_autocast_scaler_default(low));
  const mp::optimizer sgd = net.make_sgd();
  float first = 0.0f;
  for (int step = 0; step < kSteps; step++) {
    net.graph.forward(MP_GRAPH_MODE_TRAINING);
    net.graph.backward(scaler);
    sgd.scale_step(scaler);
    if (step == 0) first = net.loss_now();
  }
  return {first, net.loss_now()};
}

}  // namespace

TEST_CASE("C++: a graph learns in fp32, without an optimizer's 16-bit copies", "[cpp][graph]") {
  const Perceptron net;
  CHECK(net.graph.lists().model == nullptr);
  const auto [first, last] = train(net, MP_FP32);
  CHECK(first > 1.2f);
  CHECK(last < first - 0.1f);
  const mp_graph_tensor_t w1 = net.graph.get_tensor(net.w1);
  CHECK(std::strcmp(w1.name, "w1") == 0);
  CHECK(w1.dtype == MP_FP32);
  CHECK(w1.dtype_copy == MP_DTYPE_NONE);
  CHECK(w1.rank == 2);
  CHECK(w1.extent[1] == kHidden);
  CHECK(w1.copy == nullptr);
  CHECK(w1.grad != nullptr);
  CHECK(net.graph.get_tensor(net.logits).grad != nullptr);
  CHECK(net.graph.get_memory().copies == 0);
  CHECK(message_of([&] { net.graph.explain(); }) ==
        "mp_graph_explain: graph was compiled without mp_graph_set_autocast");
}

TEST_CASE("C++: one more call trains a graph in mixed precision", "[cpp][graph]") {
  const auto compile = [](const mp::autocast &policy) { return Perceptron(policy); };
  const Perceptron net = compile(make_policy());  // the policy is destroyed after compile
  const auto [first, last] = train(net, MP_FP16);
  CHECK(first > 1.2f);
  CHECK(last < first - 0.1f);
  CHECK(net.graph.lists().model != nullptr);
  CHECK(net.graph.get_tensor(net.w1).dtype_copy == MP_FP16);
  CHECK(net.graph.get_tensor(net.w1).dtype_grad == MP_FP16);
  CHECK(net.graph.get_memory().copies > 0);
  CHECK(net.graph.describe().find("fc1, relu  mp_gemm") != std::string::npos);
  CHECK(net.graph.explain().find("fc1/grad_w") != std::string::npos);
  CHECK(net.graph.explain(MP_AUTOCAST_FORMAT_DOT).find("digraph") == 0);
}

TEST_CASE("C++: a graph runs smaller batches and inference, and rejects invalid calls",
          "[cpp][graph]") {
  const Perceptron net;
  net.graph.set_batch(5);
  CHECK(net.graph.get_tensor(net.logits).extent[0] == 5);
  net.graph.forward(MP_GRAPH_MODE_INFERENCE);
  const auto *const correct = static_cast<const int64_t *>(net.graph.get_tensor(net.loss[2]).data);
  CHECK(*correct <= 5);

  const mp::graph open = mp::graph::create(net.context);
  const int32_t x = open.input("x", MP_FP32, {4, 6});
  const int32_t counts = open.state("counts", {6, 2});
  CHECK(message_of([&] {
          open.node("Linear", "fc", {x, counts}, {{"transposed", 1}});
        }).find("node fc: ") != std::string::npos);
  CHECK(message_of([&] {
          open.node("Linear", "fc", {x, counts}, {{"transposed", std::vector<double>{0.5}}});
        }).find("kind of transposed = MP_ATTRIBUTE_KIND_FLOATS") != std::string::npos);
  const int32_t y = open.node("Reshape", "turned", {x}, {{"extent", {0, 3, -1}}});
  CHECK(open.get_tensor(y).extent[2] == 2);
  open.node("Dropout", "dropped", {y, -1});
  open.output(open.node("Linear", "fc", {x, counts}));
  open.compile();
  open.set_step_sync(41);
  CHECK(open.get_step_sync() == 41);
  CHECK(open.lists(false).master != nullptr);
  CHECK(message_of([&] { open.lists(); }).find("requires a loss") != std::string::npos);
}

TEST_CASE("C++: a graph can be moved between compile and forward", "[cpp][graph]") {
  Perceptron net;
  const mp::graph moved = std::move(net.graph);
  CHECK(net.graph.get() == nullptr);
  moved.forward(MP_GRAPH_MODE_TRAINING);
  moved.backward();
  CHECK(message_of([&] { net.graph.compile(); }).find("graph") != std::string::npos);
}
