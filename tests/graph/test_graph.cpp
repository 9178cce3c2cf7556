// Descriptions of graphs, fusion, shared memory, and the order of calls.
#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

std::vector<std::string> lines_of(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const std::vector<int32_t> kClasses = {0, 1, 2, 3, 3, 2, 1, 0};

/// x -> Linear -> `behind` -> Linear -> loss
class Small {
 public:
  template <class Behind>
  explicit Small(const Behind &behind, mp_autocast_t policy = nullptr,
                 mp_context_t context = mptest::context())
      : graph(context) {
    x = graph.input("x", MP_FP32, {8, 16});
    w1 = graph.parameter("w1", {16, 24});
    hidden = behind(graph, graph.node("Linear", "fc1", {x, w1}));
    w2 = graph.parameter("w2", {24, 4});
    const auto outputs = graph.xent(graph.node("Linear", "fc2", {hidden, w2}), kClasses, 3);
    loss = outputs[0], row_loss = outputs[1], correct = outputs[2];
    graph.compile(policy);
  }
  void fill() {
    Random random(5);
    graph.write(w1, random_weights(random, 16 * 24, 16));
    graph.write(w2, random_weights(random, 24 * 4, 24));
    graph.feed(x, random_values(random, 8 * 16, 1.0));
  }

  Described graph;
  int32_t x, w1, w2, hidden, loss, row_loss, correct;
};

int32_t relu(Described &g, int32_t z) {
  return g.node("Relu", "relu", {z});
}

}  // namespace

TEST_CASE("graph: describe lists the launches in fp32", "[graph]") {
  const Small small(relu);
  CHECK(
      lines_of(small.graph.describe()) ==
      std::vector<std::string>{
          "forward  fc1, relu  mp_gemm  x fp32, w1 fp32 -> relu fp32 [8 24]",
          "forward  fc2  mp_gemm  relu fp32, w2 fp32 -> fc2 fp32 [8 4]",
          "inference  loss  mp_memset  fc2 fp32, labels none -> loss:2 none [8]",
          "inference  loss  mp_softmax_xent  fc2 fp32, labels none -> loss fp32 [], loss:1 fp32 "
          "[8], "
          "loss:2 none [8]",
          "backward  loss/grad_logits  mp_memset  fc2 fp32, labels none ->",
          "backward  loss/grad_logits  mp_softmax_xent  fc2 fp32, labels none -> d fc2 fp32 [8 4]",
          "backward  fc2/grad_w  mp_gemm  relu fp32, d fc2 fp32 -> d w2 fp32 [24 4]",
          "backward  fc2/grad_x, relu/grad_x  mp_gemm  d fc2 fp32, w2 fp32 -> d fc1 fp32 [8 24]",
          "backward  fc1/grad_w  mp_gemm  x fp32, d fc1 fp32 -> d w1 fp32 [16 24]"});
}

TEST_CASE("graph: describe lists the launches in mixed precision", "[graph]") {
  const PolicyHandle policy = make_policy(MP_BF16);
  const Small small(relu, policy.get());
  CHECK(
      lines_of(small.graph.describe()) ==
      std::vector<std::string>{
          "forward  cast  mp_cast  x fp32 -> x bf16 [8 16]",
          "forward  fc1, relu  mp_gemm  x bf16, w1 bf16 -> relu bf16 [8 24]",
          "forward  fc2  mp_gemm  relu bf16, w2 bf16 -> fc2 bf16 [8 4]",
          "inference  loss  mp_memset  fc2 bf16, labels none -> loss:2 none [8]",
          "inference  loss  mp_softmax_xent  fc2 bf16, labels none -> loss fp32 [], loss:1 fp32 "
          "[8], "
          "loss:2 none [8]",
          "backward  loss/grad_logits  mp_memset  fc2 bf16, labels none ->",
          "backward  loss/grad_logits  mp_softmax_xent  fc2 bf16, labels none -> d fc2 bf16 [8 4]",
          "backward  fc2/grad_w  mp_gemm  relu bf16, d fc2 bf16 -> d w2 bf16 [24 4]",
          "backward  fc2/grad_x, relu/grad_x  mp_gemm  d fc2 bf16, w2 bf16 -> d fc1 bf16 [8 24]",
          "backward  fc1/grad_w  mp_gemm  x bf16, d fc1 bf16 -> d w1 bf16 [16 24]"});
}

TEST_CASE("graph: describe escapes control characters in names", "[graph]") {
  const Small small(
      [](Described &g, int32_t z) { return g.node("Relu", "re\nbackward\x1b", {z}); });
  const std::vector<std::string> lines = lines_of(small.graph.describe());
  CHECK(lines.size() == 9);
  CHECK(lines[0].starts_with("forward  fc1, re\\u000abackward\\u001b  mp_gemm  "));
}

TEST_CASE("graph: an activation whose derivative needs z is fused", "[graph]") {
  const Small small([](Described &g, int32_t z) { return g.node("Gelu", "gelu", {z}); });
  const std::string text = small.graph.describe();
  CHECK(has(text, "forward  fc1, gelu  mp_gemm"));
  CHECK(has(text, "backward  fc2/grad_x, gelu/grad_x  mp_gemm"));
  CHECK(!has(text, "mp_pointwise"));
}

TEST_CASE("graph: tensors with other readers are not fused away", "[graph]") {
  SECTION("an output") {
    Described g;
    const int32_t x = g.input("x", MP_FP32, {4, 8});
    const int32_t z = g.node("Linear", "fc", {x, g.parameter("w", {8, 8})});
    g.output(z);
    g.output(g.node("Relu", "relu", {z}));
    g.compile();
    CHECK(has(g.describe(), "forward  relu  mp_pointwise"));
  }
  SECTION("a second reader") {
    const Small small([](Described &g, int32_t z) {
      return g.node("Add", "add", {g.node("Relu", "relu", {z}), z});
    });
    const std::string text = small.graph.describe();
    CHECK(has(text, "forward  fc1, relu  mp_gemm"));  // the epilogue stores z
    CHECK(has(text, "forward  add  mp_pointwise  relu fp32, fc1 fp32 -> add fp32 [8 24]"));
    CHECK(has(text, "backward  fc1/grad_sum  mp_pointwise"));
  }
}

TEST_CASE("graph: a pattern of names keeps the forward and backward pass of a layer in fp32",
          "[graph]") {
  const PolicyHandle policy = make_policy(MP_FP16);
  require_ok(mp_autocast_set_nodes(policy.get(), "fc2*", MP_OP_CLASS_DENY));
  Small small(relu, policy.get());
  const std::string text = small.graph.describe();
  CHECK(has(text, "forward  fc2  mp_gemm  relu fp32, w2 fp32 -> fc2 fp32 [8 4]"));
  CHECK(has(text, "backward  fc2/grad_w  mp_gemm  relu fp32, d fc2 fp32 -> d w2 fp32 [24 4]"));
  CHECK(has(text, "forward  fc1"));
  CHECK(small.graph.info(small.w1).dtype_copy == MP_FP16);
  CHECK(small.graph.info(small.w2).dtype_copy == MP_DTYPE_NONE);
  small.fill();
  small.graph.step();
  CHECK(std::isfinite(small.graph.read(small.loss).front()));
}

TEST_CASE("graph: a gradient of fp32 logits is cast for a 16-bit backward pass", "[graph]") {
  const PolicyHandle policy = make_policy(MP_FP16);
  require_ok(mp_autocast_set_nodes(policy.get(), "fc2", MP_OP_CLASS_DENY));  // excludes fc2/grad_*
  Small mixed(relu, policy.get()), wide(relu);
  CHECK(has(mixed.graph.describe(), "cast  mp_cast  d fc2 fp32 -> d fc2 fp16 [8 4]"));
  mixed.fill(), wide.fill();
  mixed.graph.step(), wide.graph.step();
  const std::vector<double> got = mixed.graph.gradient(mixed.w2),
                            want = wide.graph.gradient(wide.w2);
  for (size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(0x1p-8));
}

TEST_CASE("graph: KEEP_IO leaves outputs and gradients in fp32", "[graph]") {
  const PolicyHandle policy =
      make_policy(MP_FP16, MP_AUTOCAST_LEVEL_NORMAL, MP_AUTOCAST_FLAG_KEEP_IO);
  Described g;
  const int32_t x = g.input("x", MP_FP32, {4, 8});
  const int32_t w = g.parameter("w", {8, 8});
  const int32_t y = g.node("Linear", "fc", {x, w});
  const int32_t z = g.node("Linear", "fc2", {y, g.parameter("w2", {8, 8})});
  g.output(y);
  g.output(z);
  g.xent(z, {});
  g.compile(policy.get());
  for (const int32_t output : {y, z}) {
    CHECK(g.info(output).dtype == MP_FP32);
    CHECK(g.info(output).data != nullptr);
  }
  CHECK(g.info(y).dtype_copy == MP_FP16);  // read by fc2
  CHECK(g.info(w).dtype_grad == MP_FP32);
  Random random(1);
  g.write(w, random_weights(random, 64, 8));
  g.feed(x, random_values(random, 32, 1.0));
  g.forward();
  const std::vector<double> values = g.read(y);
  CHECK(std::any_of(values.begin(), values.end(), [](double v) { return v != 0; }));
}

TEST_CASE("graph: inference computes the loss only if labels are bound", "[graph]") {
  Small small(relu);
  small.fill();
  small.graph.step();
  const double trained = small.graph.read(small.loss).front();
  const std::vector<double> rows = small.graph.read(small.row_loss);
  double sum = 0;
  for (const double row : rows) sum += row;
  CHECK(sum / 8 == Approx(trained).epsilon(1e-6));

  small.graph.bind(small.graph.labels, nullptr);
  small.graph.forward();
  CHECK(small.graph.read(small.loss).front() == trained);  // not recomputed
  small.graph.forward(MP_GRAPH_MODE_TRAINING);
  expect_status(mp_graph_backward(small.graph.handle, nullptr, kStream), MP_ERROR_INVALID_ARGUMENT);
  CHECK(has(mp_last_error(), "input labels is not bound"));

  small.graph.feed(small.graph.labels, std::vector<int32_t>{3, 3, 3, 3, 0, 0, 0, 0});
  small.graph.forward();
  CHECK(small.graph.read(small.loss).front() != trained);
  int64_t correct = -1;
  copy_bytes(&correct, small.graph.info(small.correct).data, sizeof correct);
  CHECK(correct >= 0);
  CHECK(correct <= 8);
}

TEST_CASE("graph: activations share memory, outputs do not", "[graph]") {
  const auto deep = [](bool has_outputs) {
    auto g = std::make_unique<Described>();
    int32_t h = g->input("x", MP_FP32, {32, 64});
    for (int i = 0; i < 8; ++i) {
      h = g->node("Linear", ("fc" + std::to_string(i)).c_str(), {h, g->parameter("w", {64, 64})});
      if (has_outputs) g->output(h);
    }
    g->output(h);
    g->compile();
    return g;
  };
  const int64_t one = 32 * 64 * 4;
  const mp_graph_memory_t shared = deep(false)->memory(), apart = deep(true)->memory();
  CHECK(shared.activations == 3 * one);  // input and output of a node, and the graph's output
  CHECK(shared.activations_unshared == 8 * one);
  CHECK(apart.activations == 8 * one);
  CHECK(shared.parameters == 8 * 64 * 64 * 4);
  CHECK(shared.copies == 0);
  CHECK(shared.gradients == 0);
}

TEST_CASE("graph: mixed precision halves gradients; copies have half the bytes of parameters",
          "[graph]") {
  const PolicyHandle policy = make_policy(MP_FP16);
  const Small wide(relu), mixed(relu, policy.get());
  const mp_graph_memory_t w = wide.graph.memory(), m = mixed.graph.memory();
  CHECK(m.parameters == w.parameters);
  CHECK(m.copies * 2 == m.parameters);
  CHECK(w.gradients == 1536 + 512);  // 24 x 4 floats are 384 bytes, and aligned to 256
  CHECK(m.gradients * 2 == w.gradients);
  CHECK(w.copies == 0);
}

TEST_CASE("graph: nothing is allocated after compile, and everything is freed", "[graph]") {
  CountedContext counted;
  const PolicyHandle policy = make_policy(MP_FP16);
  Small small(relu, policy.get(), counted.get());
  small.fill();
  const int64_t count = counted.count;
  CHECK(count > 0);
  for (const int64_t batch : {8, 3, 8}) {
    require_ok(mp_graph_set_batch(small.graph.handle, batch));
    small.graph.step();
    small.graph.forward();
  }
  CHECK(counted.count == count);
}

TEST_CASE("graph: a compile that runs out of memory frees everything and can be repeated",
          "[graph]") {
  CountedContext counted;
  const PolicyHandle policy = make_policy(MP_FP16);
  int failures = 0;
  for (bool compiled = false; !compiled; ++failures) {
    Described g(counted.get());
    const int32_t x = g.input("x", MP_FP32, {8, 16});
    g.xent(g.node("Linear", "fc", {x, g.parameter("w", {16, 4})}), {});
    require_ok(mp_graph_set_autocast(g.handle, policy.get()));
    const int64_t before = counted.alive;
    counted.fails_at = counted.count + failures;
    const mp_status_t status = mp_graph_compile(g.handle);
    counted.fails_at = -1;
    compiled = status == MP_SUCCESS;
    if (compiled) break;
    expect_status(status, MP_ERROR_OUT_OF_MEMORY);
    CHECK(counted.alive == before);
    require_ok(mp_graph_compile(g.handle));
  }
  CHECK(failures >= 4);  // the memory block and three lists
}

TEST_CASE("graph: equal calls give equal bits; without a scaler S = 1", "[graph]") {
  Small small(relu);
  small.fill();
  small.graph.step();
  const std::vector<double> first = small.graph.gradient(small.w1);
  small.graph.step();
  CHECK(small.graph.gradient(small.w1) == first);

  const ScalerHandle scaler = make_scaler(MP_SCALER_POLICY_STATIC, 1024);
  small.graph.step(scaler.get());
  std::vector<double> scaled = small.graph.gradient(small.w1);
  for (double &value : scaled) value /= 1024;
  CHECK(scaled == first);  // powers of two cancel in fp32
}

TEST_CASE("graph: kept gradients of activations are readable after the backward pass", "[graph]") {
  Described g;
  const int32_t x = g.input("x", MP_FP32, {8, 16});
  const int32_t z = g.node("Linear", "fc1", {x, g.parameter("w1", {16, 24})});
  g.output(z);
  const int32_t h = g.node("Relu", "relu", {z});
  const int32_t y = g.node("Linear", "fc2", {h, g.parameter("w2", {24, 4})});
  g.keep_gradient(z);
  g.keep_gradient(h);
  g.xent(y, kClasses);
  g.compile();
  Random random(5);
  g.write_random(random, 16);
  g.feed(x, random_values(random, 8 * 16, 1.0));
  g.step();
  const std::vector<double> before = g.read(z), dh = g.gradient(h), dz = g.gradient(z);
  int64_t passed = 0;
  for (size_t i = 0; i < dz.size(); ++i) {
    CHECK(dz[i] == (before[i] > 0 ? dh[i] : 0.0));
    passed += before[i] > 0 ? 1 : 0;
  }
  CHECK(passed > 0);
  CHECK(passed < static_cast<int64_t>(dz.size()));
}

TEST_CASE("graph: relu after a batch norm is fused, forward and backward", "[graph]") {
  const auto describe = [](bool keeps_gradient) {
    Described g;
    const int32_t x = g.input("x", MP_FP32, {16, 4});
    const int32_t z = g.node("BatchNorm", "bn",
                             {x, g.parameter("gamma", {4}), g.parameter("beta", {4}),
                              g.state("mean", {4}), g.state("variance", {4})});
    if (keeps_gradient) g.keep_gradient(z);
    g.xent(g.node("Relu", "relu", {z}), {});
    g.compile();
    return g.describe();
  };
  const std::string fused = describe(false), kept = describe(true);
  CHECK(has(fused, "forward  bn, relu  mp_batchnorm_forward"));
  CHECK(has(fused, "backward  bn/grad, relu/grad_x  mp_batchnorm_backward"));
  CHECK(!has(fused, "mp_pointwise"));
  CHECK(has(kept, "forward  bn, relu  mp_batchnorm_forward"));
  CHECK(has(kept, "backward  relu/grad_x  mp_pointwise"));
}

TEST_CASE("graph: each backward pass requires a forward pass in training mode", "[graph]") {
  Small small(relu);
  small.fill();
  const auto expect_rejected = [&] {
    expect_status(mp_graph_backward(small.graph.handle, nullptr, kStream),
                  MP_ERROR_INVALID_ARGUMENT);
    CHECK(has(mp_last_error(), "requires mp_graph_forward with MP_GRAPH_MODE_TRAINING"));
  };
  expect_rejected();
  small.graph.forward();
  expect_rejected();
  small.graph.step();
  expect_rejected();  // the first pass overwrote its inputs
  small.graph.forward(MP_GRAPH_MODE_TRAINING);
  require_ok(mp_graph_set_batch(small.graph.handle, 4));
  expect_rejected();
}

TEST_CASE("graph: a rejected batch size changes nothing", "[graph]") {
  Described g;
  const int32_t x = g.input("x", MP_FP32, {8, 6});
  const int32_t y = g.node("Reshape", "pairs", {x}, {{"extent", {4, -1}}});
  const int32_t z = g.node("Tanh", "tanh", {y});
  g.output(z);
  g.compile();
  expect_status(mp_graph_set_batch(g.handle, 3), MP_ERROR_INVALID_ARGUMENT);
  CHECK(has(mp_last_error(), "node pairs"));
  g.feed(x, Floats32(48, 0.5f));
  g.forward();
  CHECK(g.read(z).size() == 48);
  CHECK(g.info(x).extent[0] == 8);
}

TEST_CASE("graph: 16-bit inputs are cast for fp32 nodes", "[graph]") {
  Described g;
  const int32_t x = g.input("x", MP_FP16, {4, 8});
  const int32_t w = g.parameter("w", {8, 8});
  const int32_t y = g.node("Linear", "fc", {x, w});
  g.output(y);
  const PolicyHandle other = make_policy(MP_BF16);
  require_ok(mp_graph_set_autocast(g.handle, other.get()));
  expect_status(mp_graph_compile(g.handle), MP_ERROR_INVALID_ARGUMENT);
  CHECK(has(mp_last_error(), "input x: dtype = fp16 must be fp32 or bf16"));

  Described wide;
  const int32_t wx = wide.input("x", MP_FP16, {4, 8});
  const int32_t ww = wide.parameter("w", {8, 8});
  const int32_t wy = wide.node("Linear", "fc", {wx, ww});
  wide.output(wy);
  wide.compile();
  CHECK(has(wide.describe(), "cast  mp_cast  x fp16 -> x fp32 [4 8]"));
  Floats32 identity(64);
  for (size_t i = 0; i < 8; ++i) identity[9 * i] = 1.0f;
  wide.write(ww, identity);
  std::vector<double> values;
  for (int i = 0; i < 32; ++i) values.push_back(i - 16);
  wide.feed(wx, MP_FP16, values);
  wide.forward();
  CHECK(wide.read(wy) == values);
}

TEST_CASE("graph: the parts of its memory add up to the allocation", "[graph]") {
  CountedContext counted;
  const PolicyHandle policy = make_policy(MP_FP16);
  const Small small(relu, policy.get(), counted.get());
  const mp_graph_memory_t m = small.graph.memory();
  const int64_t sum =
      m.parameters + m.copies + m.gradients + m.states + m.activations + m.workspace;
  CHECK(counted.largest == sum);
}
