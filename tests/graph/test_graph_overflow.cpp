// Gradients of a graph that overflow, and the steps that they skip.
#include <cmath>
#include <limits>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

/// Returns the number of steps that a scaler with S = 1 skipped after a step of a graph.
int64_t skipped_of_one_step(Described &g) {
  const ScalerHandle scaler = make_scaler(MP_SCALER_POLICY_BACKOFF, 1);
  g.train(scaler.get());
  auto state = initialized<mp_scaler_state_t>();
  require_ok(mp_scaler_get_state_sync(scaler.get(), &state, kStream));
  return state.skipped;
}

}  // namespace

TEST_CASE("graph: a pointwise gradient that overflows skips the step although ReLU drops it",
          "[graph][short]") {
  const PolicyHandle policy = allow_all(MP_FP16);
  for (const auto &[op, b_value] : {std::pair{"Mul", 4.0}, {"Div", 0.25}})
    for (const float dy_value : {1000.0f, 20000.0f}) {  // multiplied by 4
      CAPTURE(op, dy_value);
      Described g;
      const int32_t p = g.parameter("p", {2, 4}), b = g.input("b", MP_FP16, {2, 4});
      const int32_t y = g.node(op, "y", {g.node("Relu", "relu", {p}), b});
      const int32_t seed = g.seed_gradient(y);
      g.compile(policy.get());
      g.write(p, Floats32(8, -1));
      g.feed(b, MP_FP16, std::vector<double>(8, b_value));
      g.feed(seed, Floats32(8, dy_value));
      CHECK(skipped_of_one_step(g) == (dy_value * 4 > 65504 ? 1 : 0));
      CHECK(g.gradient(p) == std::vector<double>(8, 0.0));
    }
}

TEST_CASE("graph: a seed that overflows when scaled skips the step", "[graph][short]") {
  for (const float dy_value : {1e38f, std::numeric_limits<float>::infinity()}) {
    Described g;
    const int32_t p = g.parameter("p", {2, 4});
    const int32_t seed = g.seed_gradient(g.node("Relu", "relu", {p}));
    g.compile();
    g.write(p, Floats32(8, -1));
    g.feed(seed, Floats32(8, dy_value));
    CHECK(skipped_of_one_step(g) == (std::isinf(dy_value) ? 1 : 0));
  }
}

TEST_CASE("graph: an infinite value computed after the loss does not skip the step",
          "[graph][short]") {
  Described g;
  const int32_t y = g.node("Tanh", "tanh", {g.parameter("p", {2, 3})});
  const int32_t big = g.input("big", MP_FP32, {2});
  const int32_t late = g.node("Add", "late", {g.xent(y, {0, 0}, 2)[1], big});
  g.output(late);
  g.compile();
  g.write(g.parameters[0], Floats32(6, 0.5f));
  const std::vector<double> infinities(2, kInfinity);
  g.feed(big, MP_FP32, infinities);
  CHECK(skipped_of_one_step(g) == 0);
  CHECK(g.read(late) == infinities);
}

namespace {

/// Returns found_inf of a scaler with S = 1 after a backward pass in FP16 with dy as the gradient
/// of `y`, before a step.
float found_inf_of(Described &g, int32_t y, int32_t p, const Floats32 &values, const Floats32 &dy) {
  const PolicyHandle policy = allow_all(MP_FP16);
  const int32_t seed = g.seed_gradient(y);
  g.compile(policy.get());
  g.write(p, values);
  g.feed(seed, dy);
  const ScalerHandle scaler = make_scaler(MP_SCALER_POLICY_BACKOFF, 1);
  g.step(scaler.get());
  float found = -1;
  require_ok(mp_memcpy(context(), &found, mp_scaler_get_found_inf_address(scaler.get()),
                       sizeof found, kStream));
  require_ok(mp_stream_sync(context(), kStream));
  return found;
}

}  // namespace

TEST_CASE("graph: overflow in gradients of max pooling and batch normalization is found",
          "[graph][short]") {
  for (const float dy : {10.0f, 20000.0f}) {
    CAPTURE(dy);
    {
      Described g;  // the center of 3 x 3 pixels is the maximum of all four windows
      const int32_t p = g.parameter("p", {1, 3, 3, 1});
      const int32_t y = g.node("MaxPool", "pool", {p}, {{"window", 2}, {"stride", 1}});
      CHECK(found_inf_of(g, y, p, {0, 0, 0, 0, 1, 0, 0, 0, 0}, Floats32(4, dy)) ==
            (dy > 100 ? 1.0f : 0.0f));
    }
    {
      Described g;  // dx = dy / 0.0033
      const int32_t p = g.parameter("p", {4, 1});
      const int32_t y =
          g.node("BatchNorm", "bn", {p, -1, -1, g.state("mean", {1}), g.state("variance", {1})});
      CHECK(found_inf_of(g, y, p, {1e-3f, -1e-3f, 1e-3f, -1e-3f}, {dy, dy, -dy, -dy}) ==
            (dy > 100 ? 1.0f : 0.0f));
    }
  }
}
