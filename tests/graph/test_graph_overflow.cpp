// Gradients of a graph that overflow, and the steps that they skip.
#include <cmath>
#include <limits>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

/// Returns the number of steps that a scaler with S = 1 skipped after a step of a graph.
int64_t skipped_of_one_step(Described &g, int64_t numel) {
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config.init_scale = 1.0f;
  const ScalerHandle scaler = mptools::make_scaler(context(), config);
  mp_tensor_list_t grads, master, model;
  require_ok(mp_graph_get_lists(g.handle, &grads, &master, &model));
  Trainer trainer(grads, master, model, {numel});
  g.step(scaler.get());
  trainer.step(scaler.get());
  auto state = initialized<mp_scaler_state_t>();
  require_ok(mp_scaler_get_state_sync(scaler.get(), &state, kStream));
  return state.skipped;
}

}  // namespace

TEST_CASE("graph: a pointwise gradient that overflows skips the step although ReLU drops it",
          "[graph][short]") {
  const PolicyHandle policy = make_policy(MP_FP16);
  require_ok(mp_autocast_set_nodes(policy.get(), "*", MP_OP_CLASS_ALLOW));
  for (const auto &[op, b_value] : {std::pair{"Mul", 4.0}, {"Div", 0.25}})
    for (const float dy_value : {1000.0f, 20000.0f}) {  // multiplied by 4
      CAPTURE(op, dy_value);
      Described g;
      const int32_t p = g.parameter("p", {2, 4}), b = g.input("b", MP_FP16, {2, 4});
      const int32_t y = g.node(op, "y", {g.node("Relu", "relu", {p}), b});
      int32_t seed;
      require_ok(mp_graph_seed_gradient(g.handle, y, &seed));
      g.compile(policy.get());
      g.write(p, Floats32(8, -1));
      const DeviceArray all_b(MP_FP16, std::vector<double>(8, b_value));
      const DeviceBuffer<float> dy(Floats32(8, dy_value));
      g.bind(b, all_b.data());
      g.bind(seed, dy.data());
      CHECK(skipped_of_one_step(g, 8) == (dy_value * 4 > 65504 ? 1 : 0));
      CHECK(g.gradient(p) == std::vector<double>(8, 0.0));
    }
}

TEST_CASE("graph: a seed that overflows when scaled skips the step", "[graph][short]") {
  for (const float dy_value : {1e38f, std::numeric_limits<float>::infinity()}) {
    Described g;
    const int32_t p = g.parameter("p", {2, 4});
    int32_t seed;
    require_ok(mp_graph_seed_gradient(g.handle, g.node("Relu", "relu", {p}), &seed));
    g.compile();
    g.write(p, Floats32(8, -1));
    const DeviceBuffer<float> dy(Floats32(8, dy_value));
    g.bind(seed, dy.data());
    CHECK(skipped_of_one_step(g, 8) == (std::isinf(dy_value) ? 1 : 0));
  }
}

TEST_CASE("graph: an infinite value computed after the loss does not skip the step",
          "[graph][short]") {
  Described g;
  const int32_t y = g.node("Tanh", "tanh", {g.parameter("p", {2, 3})});
  const int32_t labels = g.input("labels", MP_DTYPE_NONE, {2}), big = g.input("big", MP_FP32, {2});
  const std::vector<int32_t> loss = g.node_of("SoftmaxXent", "loss", {y, labels}, 2);
  g.loss(loss[0]);
  const int32_t late = g.node("Add", "late", {loss[1], big});
  g.output(late);
  g.compile();
  g.write(g.parameters[0], Floats32(6, 0.5f));
  const DeviceBuffer<int32_t> zeros(std::vector<int32_t>(2));
  const double infinity = std::numeric_limits<double>::infinity();
  const DeviceArray infinities(MP_FP32, std::vector<double>(2, infinity));
  g.bind(labels, zeros.data());
  g.bind(big, infinities.data());
  CHECK(skipped_of_one_step(g, 6) == 0);
  CHECK(g.read(late) == std::vector<double>(2, infinity));
}

namespace {

/// Returns found_inf of a scaler with S = 1 after a backward pass in FP16 with dy as the gradient
/// of `y`, before a step.
float found_inf_of(Described &g, int32_t y, int32_t p, const Floats32 &values, const Floats32 &dy) {
  const PolicyHandle policy = make_policy(MP_FP16);
  require_ok(mp_autocast_set_nodes(policy.get(), "*", MP_OP_CLASS_ALLOW));
  int32_t seed;
  require_ok(mp_graph_seed_gradient(g.handle, y, &seed));
  g.compile(policy.get());
  g.write(p, values);
  const DeviceBuffer<float> of_y(dy);
  g.bind(seed, of_y.data());
  mp_scaler_config_t config = mp_scaler_config_default(MP_SCALER_POLICY_BACKOFF);
  config.init_scale = 1.0f;
  const ScalerHandle scaler = mptools::make_scaler(context(), config);
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
