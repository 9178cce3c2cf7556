// Transformers as graphs: training, fused calls, types and lengths.
#include <cmath>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

constexpr int64_t kBatch = 4, kSteps = 6, kWidth = 16, kHeads = 4, kKvHeads = 2, kClasses = 7;

/// Returns the first line of a text that contains `part`.
std::string line_with(const std::string &text, const std::string &part) {
  const size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  const size_t start = text.rfind('\n', at) + 1;
  return text.substr(start, text.find('\n', at) - start);
}

/// A pre-norm block with a table of positions, on tokens and labels.
class Transformer {
 public:
  explicit Transformer(mp_autocast_t policy, double dropout = 0.125) {
    const int32_t tokens = graph.input("tokens", MP_DTYPE_NONE, {kBatch, kSteps});
    const int32_t table = graph.parameter("wte", {kClasses, kWidth});
    int32_t x = graph.node("Embedding", "embedding", {table, tokens});
    x = graph.node("Add", "positions", {x, graph.parameter("wpe", {kSteps, kWidth})});
    int32_t h = graph.node("RMSNorm", "norm1", {x, graph.parameter("gamma1", {kWidth})});
    h = linear("qkv", h, kWidth, (kHeads + 2 * kKvHeads) * 4);
    h = graph.node("RotaryEmbedding", "rope", {h}, {{"heads", 8}, {"rotated_heads", 6}});
    h = graph.node("Attention", "attention", {h},
                   {{"heads", kHeads}, {"kv_heads", kKvHeads}, {"causal", 1}});
    h = graph.node("Dropout", "drop", {linear("proj", h, kWidth, kWidth)}, {{"p", dropout}});
    x = graph.node("Add", "block/residual", {x, h});
    h = graph.node("LayerNorm", "norm2",
                   {x, graph.parameter("gamma2", {kWidth}), graph.parameter("beta2", {kWidth})});
    h = graph.node("Swiglu", "swiglu", {linear("up", h, kWidth, 48)});
    x = graph.node("Add", "mlp/residual", {x, linear("down", h, 24, kWidth)});
    h = graph.node("LayerNorm", "norm3", {x, graph.parameter("gamma3", {kWidth})});
    loss_ = graph.xent(linear("head", h, kWidth, kClasses), {}).front();
    graph.compile(policy);
    Random random(5);
    for (const int32_t parameter : graph.parameters) {
      const int64_t numel = graph.numel(parameter);
      graph.write(parameter, graph.info(parameter).rank == 1
                                 ? Floats32(static_cast<size_t>(numel), 1.0f)
                                 : random_weights(random, numel, 4 * kWidth));
    }
    std::vector<int32_t> integers;
    for (int64_t i = 0; i < kBatch * kSteps; ++i)
      integers.push_back(static_cast<int32_t>(random.integer(0, kClasses - 1)));
    graph.feed(tokens, integers);
    for (int32_t &label : integers) label = (label * 3 + 1) % static_cast<int32_t>(kClasses);
    graph.feed(graph.labels, integers);
  }

  double step(mp_scaler_t scaler) {
    graph.train(scaler);
    return graph.read(loss_).front();
  }

  Described graph;

 private:
  int32_t linear(const std::string &name, int32_t x, int64_t in, int64_t out) {
    return graph.node("Linear", name.c_str(),
                      {x, graph.parameter((name + ".w").c_str(), {in, out})});
  }

  int32_t loss_;
};

/// Returns a policy with a residual stream of 16 bits.
PolicyHandle make_low_stream() {
  PolicyHandle policy = make_policy(MP_FP16);
  const char *const norms[] = {"LayerNorm", "LayerNormGrad", "RMSNorm", "RMSNormGrad"};
  require_ok(mp_autocast_set_class(policy.get(), norms, 4, MP_OP_CLASS_INFER));
  return policy;
}

std::vector<double> losses_of(mp_dtype_t dtype) {
  const PolicyHandle policy = dtype != MP_FP32 ? make_policy(dtype) : nullptr;
  // S is so high that the first steps overflow, and are skipped.
  const ScalerHandle scaler =
      dtype == MP_FP16 ? make_scaler(MP_SCALER_POLICY_BACKOFF, 0x1p22f) : nullptr;
  Transformer net(policy.get());
  std::vector<double> losses;
  for (int step = 0; step < 30; ++step) losses.push_back(net.step(scaler.get()));
  for (const float weight : net.graph.masters()) losses.push_back(weight);
  return losses;
}

}  // namespace

TEST_CASE("graph: training of a transformer reduces its loss and is reproducible", "[graph]") {
  for (const mp_dtype_t dtype : kDtypes) {
    const std::vector<double> losses = losses_of(dtype);
    CAPTURE(mp_dtype_name(dtype), losses[0], losses[29]);
    CHECK(losses[0] < 2.5);
    CHECK(losses[29] < 0.6 * losses[0]);
    CHECK(losses_of(dtype) == losses);
  }
}

TEST_CASE("graph: norms absorb sums and dropout in both passes", "[graph]") {
  const PolicyHandle policy = make_policy(MP_FP16), low = make_low_stream();
  for (const mp_autocast_t given : {mp_autocast_t{nullptr}, policy.get(), low.get()}) {
    const Transformer net(given);
    const std::string calls = net.graph.describe();
    CAPTURE(calls);
    CHECK(has(calls, "forward  norm2, block/residual, drop  mp_norm_forward"));
    CHECK(has(calls, "forward  norm3, mlp/residual  mp_norm_forward"));
    CHECK(
        has(calls, "backward  norm2/grad, block/residual/grad_sum, drop/grad_x  mp_norm_backward"));
    CHECK(has(calls, "forward  norm1  mp_norm_forward"));
    CHECK_FALSE(has(calls, "mp_dropout"));
  }
}

namespace {

/// Returns the norm of a sum whose terms share a dropout, and in training the gradient of a weight.
/// @param is_kept  makes the dropout an output, so that no node can absorb it
std::vector<double> norm_of_shared(int terms, mp_autocast_t policy, bool trains, bool is_kept) {
  Described g;
  const int32_t x = g.input("x", MP_FP32, {kBatch, kWidth});
  const int32_t w = g.parameter("w", {kWidth, kWidth}), w2 = g.parameter("w2", {kWidth, kWidth});
  const int32_t d = g.node("Dropout", "d", {g.node("Linear", "fc", {x, w})});
  int32_t other = d;
  if (terms == 1) other = g.node("Relu", "relu", {d});
  if (terms == 2) other = g.node("Linear", "fc2", {g.node("LayerNorm", "norm1", {d}), w2});
  const int32_t s = g.node("Add", "sum", {d, other});
  int32_t y = g.node("LayerNorm", "norm2", {s});
  if (terms != 2) y = g.node("Linear", "fc2", {y, w2});
  g.output(y);
  if (is_kept) g.output(d);
  const int32_t seed = trains ? g.seed_gradient(y) : -1;
  g.compile(policy);
  Random random(7);
  g.write_random(random, kWidth);
  const Floats32 values = random_values(random, kBatch * kWidth, 1.0);
  g.feed(x, values);
  if (trains) {
    g.feed(seed, values);
    g.step();
  } else {
    g.forward();
  }
  std::vector<double> results = g.read(y);
  if (trains)
    for (const double gradient : g.gradient(w)) results.push_back(gradient);
  return results;
}

}  // namespace

TEST_CASE("graph: a dropout that two nodes read is not absorbed", "[graph]") {
  const PolicyHandle policy = make_policy(MP_FP16), low = make_low_stream();
  for (const int terms : {0, 1, 2})
    for (const mp_autocast_t given : {mp_autocast_t{nullptr}, policy.get(), low.get()})
      for (const bool trains : {false, true}) {
        CAPTURE(terms, given == nullptr, given == policy.get(), trains);
        CHECK(norm_of_shared(terms, given, trains, false) ==
              norm_of_shared(terms, given, trains, true));
      }
}

TEST_CASE("graph: norms read and write 16 bits without casts", "[graph]") {
  const PolicyHandle policy = make_policy(MP_FP16), low = make_low_stream();
  for (const mp_autocast_t given : {policy.get(), low.get()}) {
    Transformer net(given);
    const std::string calls = net.graph.describe();
    CAPTURE(calls);
    CHECK(has(line_with(calls, "forward  norm2"),
              "proj fp16, gamma2 fp32, beta2 fp32 -> norm2 fp16"));
    // The gradient of the residual has the type of the stream.
    CHECK(has(line_with(calls, "backward  norm2/grad"),
              given == policy.get() ? "norm2/mean fp32 -> d mlp/residual fp32"
                                    : "norm2/mean fp32 -> d mlp/residual fp16"));
    CHECK(has(line_with(calls, "backward  norm2/grad"), "d norm2 fp16"));
    for (const char *const cast : {"norm2 fp", "norm3 fp", "drop fp", "residual fp"})
      CHECK_FALSE(has(calls, std::string("cast  mp_cast  ").append(cast)));
    CHECK(has(net.graph.explain(), "LayerNorm"));
    const double first = net.step(nullptr);
    for (int i = 0; i < 20; ++i) net.step(nullptr);
    CHECK(net.step(nullptr) < 0.8 * first);
  }
}

TEST_CASE("graph: a norm of a 16-bit input without autocast is fp32", "[graph]") {
  Described g;
  const int32_t x = g.input("x", MP_BF16, {2, 4});
  const int32_t y = g.node("LayerNorm", "norm", {x});
  const int32_t p = g.node("Softmax", "softmax", {y});
  g.output(p);
  g.compile();
  CHECK(g.info(p).dtype == MP_FP32);
  g.feed(x, MP_BF16, {1, 1, 1, 1, 1, -1, 1, -1});
  g.forward();
  const std::vector<double> got = g.read(p);
  const double large = 1 / (2 + 2 * std::exp(-2.0)), small = large * std::exp(-2.0);
  const double want[] = {0.25, 0.25, 0.25, 0.25, large, small, large, small};
  for (size_t i = 0; i < 8; ++i) CHECK(got[i] == Approx(want[i]).epsilon(1e-4));
}

TEST_CASE("graph: lengths of attention, softmax and mean hide the elements after them", "[graph]") {
  constexpr int64_t kRow = (kHeads + 2 * kKvHeads) * 4;
  Described g;
  const int32_t x = g.input("x", MP_FP32, {kBatch, kSteps, kRow});
  const int32_t lengths = g.input("lengths", MP_DTYPE_NONE, {kBatch});
  const Attributes heads = {{"heads", kHeads}, {"kv_heads", kKvHeads}, {"causal", 1}};
  const int32_t o = g.node("Attention", "attention", {x, -1, -1, lengths}, heads);
  const int32_t p = g.node("Softmax", "softmax", {x, lengths});
  const int32_t m = g.node("Mean", "mean", {x, lengths}, {{"axes", {1}}});
  for (const int32_t output : {o, p, m}) g.output(output);
  g.compile();
  Random random(4);
  Floats32 values = random_values(random, kBatch * kSteps * kRow, 1.0);
  const auto run = [&](int32_t tensor, const int32_t *ends) {
    g.feed(x, values);
    g.bind(lengths, ends);
    g.forward();
    return g.read(tensor);
  };
  const std::vector<int32_t> ends = {3, 6, 1, 0};
  const DeviceBuffer<int32_t> on_device(ends);
  const std::vector<double> all = run(o, nullptr);
  const std::vector<double> before = run(o, on_device.data());
  for (int64_t row = 0; row < kBatch * kSteps; ++row)
    for (int64_t column = 0; column < kHeads * 4; ++column) {
      const auto i = static_cast<size_t>(row * kHeads * 4 + column);
      // Causal queries do not depend on later keys.
      CHECK(before[i] == (row % kSteps < ends[static_cast<size_t>(row / kSteps)] ? all[i] : 0.0));
    }
  const std::vector<double> means = run(m, on_device.data());
  for (size_t i = 0; i < means.size(); ++i) {
    const auto sequence = static_cast<int64_t>(i) / kRow;
    const int64_t end = ends[static_cast<size_t>(sequence)];
    double sum = 0;
    for (int64_t row = sequence * kSteps; row < sequence * kSteps + end; ++row)
      sum += values[static_cast<size_t>(row * kRow + static_cast<int64_t>(i) % kRow)];
    CHECK(means[i] == Approx(end > 0 ? sum / static_cast<double>(end) : 0.0).margin(1e-6));
  }
  const std::vector<double> probabilities = run(p, on_device.data());
  for (int64_t row = 0; row < kBatch * kSteps; ++row) {
    double sum = 0;
    for (int64_t column = 0; column < kRow; ++column) {
      const double value = probabilities[static_cast<size_t>(row * kRow + column)];
      const bool is_visible = column < ends[static_cast<size_t>(row / kSteps)];
      CHECK((value > 0) == is_visible);
      sum += value;
    }
    CHECK(sum == Approx(row / kSteps == 3 ? 0.0 : 1.0));
  }
}
