// What goes from one pass to the next: statistics of a normalisation, h and c of a recurrent layer.
#include <utility>

#include "tests/graph/described.h"

using namespace mptest;

TEST_CASE("graph: states of a normalisation are used in inference, and moved in training",
          "[graph]") {
  Described g;
  const int32_t x = g.input("x", MP_FP32, {16, 4});
  const int32_t gamma = g.parameter("gamma", {4}), beta = g.parameter("beta", {4});
  const int32_t mean = g.state("mean", {4}), variance = g.state("variance", {4});
  const int32_t y = g.node("BatchNorm", "bn", {x, gamma, beta, mean, variance},
                           {{"epsilon", 0}, {"momentum", 0.5}});
  g.output(y);
  const int32_t labels = g.input("labels", MP_DTYPE_NONE, {16});
  g.loss(g.node("SoftmaxXent", "loss", {y, labels}));
  g.compile();
  g.write(gamma, {2, 2, 2, 2});
  g.write(beta, {1, 1, 1, 1});
  g.write(variance, {4, 4, 4, 4});
  g.write(mean, {8, 8, 8, 8});
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(i % 8 < 4 ? 0.0f : 2.0f);  // mean 1, variance 1
  const DeviceBuffer<float> data(values);
  const DeviceBuffer<int32_t> wanted(std::vector<int32_t>(16, 1));
  g.bind(x, data.data());
  g.bind(labels, wanted.data());
  require_ok(mp_graph_forward(g.handle, MP_GRAPH_INFERENCE, kStream));
  for (const double v : g.read(y)) CHECK((v == -7.0 || v == -5.0));  // (x - 8) 2 / 2 + 1
  g.step();
  for (const double v : g.read(y)) CHECK((v == -1.0 || v == 3.0));
  CHECK(g.read(mean) == std::vector<double>(4, 4.5));
  CHECK(g.memory().states == 2 * 256);  // two of them, each aligned
}

TEST_CASE("graph: a state that is not bound is zero, cast or not", "[graph]") {
  constexpr int64_t batch = 3, steps = 2, in = 8, hidden = 16;
  for (const mp_dtype_t low : {MP_FP32, MP_FP16}) {
    Described g;
    const int32_t x = g.input("x", MP_FP32, {batch, steps, in});
    const int32_t h0 = g.input("h0", MP_FP32, {batch, hidden});
    const int32_t c0 = g.input("c0", MP_FP32, {batch, hidden});
    const std::vector<int32_t> y = g.node_of(
        "LSTM", "lstm",
        {x, g.parameter("w_ih", {4 * hidden, in}), g.parameter("w_hh", {4 * hidden, hidden}),
         g.parameter("b_ih", {4 * hidden}), g.parameter("b_hh", {4 * hidden}), h0, c0},
        2);
    const int32_t labels = g.input("labels", MP_DTYPE_NONE, {batch});
    g.loss(g.node("SoftmaxXent", "loss", {y[1], labels}));
    const PolicyHandle policy = low != MP_FP32 ? make_policy(low) : nullptr;
    g.compile(policy.get());
    CHECK(g.info(h0).dtype_copy == (low == MP_FP32 ? MP_DTYPE_NONE : low));

    Random random(3);
    for (const int32_t w : g.parameters) {
      const mp_graph_tensor_t info = g.info(w);
      g.write(w, random_weights(random, info.extent[0] * (info.rank > 1 ? info.extent[1] : 1), in));
    }
    const DeviceBuffer<float> data(random_values(random, batch * steps * in, 1.0));
    const DeviceBuffer<float> state(random_values(random, batch * hidden, 1.0));
    const DeviceBuffer<float> zeros(Floats32(batch * hidden, 0.0f));
    const DeviceBuffer<int32_t> classes(std::vector<int32_t>{3, 1, 2});
    g.bind(x, data.data());
    g.bind(labels, classes.data());
    const auto gradients = [&] {
      g.step();
      return std::pair(g.gradient(g.parameters[0]), g.gradient(g.parameters[1]));
    };
    const auto unbound = gradients();
    const auto bound = [&](const float *h, const float *c) {
      g.bind(h0, h);
      g.bind(c0, c);
      return gradients();
    };
    CHECK(bound(zeros.data(), zeros.data()) == unbound);
    CHECK(bound(state.data(), nullptr) != unbound);
    CHECK(bound(nullptr, state.data()) != unbound);
    CHECK(bound(nullptr, nullptr) == unbound);
  }
}
