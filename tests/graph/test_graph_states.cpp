// State between passes: running statistics of batch norm, h and c of a recurrent layer, and the
// step that determines dropout masks.
#include <utility>

#include "tests/graph/described.h"

using namespace mptest;

TEST_CASE("graph: batch norm uses running statistics in inference and updates them in training",
          "[graph]") {
  Described g;
  const int32_t x = g.input("x", MP_FP32, {16, 4});
  const int32_t gamma = g.parameter("gamma", {4}), beta = g.parameter("beta", {4});
  const int32_t mean = g.state("mean", {4}), variance = g.state("variance", {4});
  const int32_t y = g.node("BatchNorm", "bn", {x, gamma, beta, mean, variance},
                           {{"epsilon", 0}, {"momentum", 0.5}});
  g.output(y);
  g.xent(y, std::vector<int32_t>(16, 1));
  g.compile();
  g.write(gamma, {2, 2, 2, 2});
  g.write(beta, {1, 1, 1, 1});
  g.write(variance, {4, 4, 4, 4});
  g.write(mean, {8, 8, 8, 8});
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(i % 8 < 4 ? 0.0f : 2.0f);  // mean 1, variance 1
  g.feed(x, values);
  g.forward();
  for (const double v : g.read(y)) CHECK((v == -7.0 || v == -5.0));  // (x - 8) 2 / 2 + 1
  g.step();
  for (const double v : g.read(y)) CHECK((v == -1.0 || v == 3.0));
  CHECK(g.read(mean) == std::vector<double>(4, 4.5));
  CHECK(g.memory().states == 2 * 256);  // two of them, each aligned
}

TEST_CASE("graph: an unbound state is zero, cast or not", "[graph]") {
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
    g.xent(y[1], {3, 1, 2});
    const PolicyHandle policy = low != MP_FP32 ? make_policy(low) : nullptr;
    g.compile(policy.get());
    CHECK(g.info(h0).dtype_copy == (low == MP_FP32 ? MP_DTYPE_NONE : low));

    Random random(3);
    g.write_random(random, in);
    g.feed(x, random_values(random, batch * steps * in, 1.0));
    const DeviceBuffer<float> state(random_values(random, batch * hidden, 1.0));
    const DeviceBuffer<float> zeros(Floats32(batch * hidden, 0.0f));
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

namespace {

/// Two dropout nodes on ones, and a loss of their sum.
class Dropped {
 public:
  static constexpr int64_t kRows = 4, kColumns = 64;

  /// @param has_offset  the first node has an offset, which is an input
  explicit Dropped(bool has_offset = false, int64_t seed = 5) {
    x = g.input("x", MP_FP32, {kRows, kColumns});
    offset = g.input("offset", MP_DTYPE_NONE, {});
    const int32_t w = g.parameter("w", {kColumns, kColumns});
    const int32_t h = g.node("Linear", "h", {x, w});
    for (const int32_t at : {has_offset ? offset : -1, -1})
      y.push_back(g.node("Dropout", "drop", {h, at}, {{"seed", seed}}));
    for (const int32_t tensor : y) {
      g.output(tensor);
      g.keep_gradient(tensor);
    }
    g.keep_gradient(h);
    g.xent(g.node("Add", "sum", y), std::vector<int32_t>(kRows, 1));
    hidden = h;
    g.compile();
    Floats32 identity(kColumns * kColumns);
    for (size_t i = 0; i < kColumns; ++i) identity[i * (kColumns + 1)] = 1.0f;
    g.write(w, identity);
    g.bind(x, ones_.data());
  }

  std::vector<std::vector<double>> masks() const { return {g.read(y[0]), g.read(y[1])}; }
  std::vector<std::vector<double>> step() {
    g.step();
    return masks();
  }
  int64_t count() const {
    int64_t t = -1;
    require_ok(mp_graph_get_step_sync(g.handle, &t, kStream));
    return t;
  }
  /// Returns the mask of mp_dropout.
  std::vector<double> mask_of(uint64_t seed, uint64_t step) const {
    mp_dropout_desc_t desc = mp_dropout_desc_default(kRows * kColumns, 0.5f, MP_FP32);
    desc.seed = seed;
    const DeviceBuffer<uint64_t> at(std::vector<uint64_t>{step});
    DeviceBuffer<float> out(kRows * kColumns);
    require_ok(mp_dropout(context(), &desc, at.data(), ones_.data(), out.data(), nullptr, kStream));
    const std::vector<float> values = out.download();
    return std::vector<double>(values.begin(), values.end());
  }

  Described g;
  int32_t x, offset, hidden;
  std::vector<int32_t> y;

 private:
  DeviceBuffer<float> ones_{Floats32(kRows * kColumns, 1.0f)};
};

}  // namespace

TEST_CASE("graph: dropout masks differ between steps and nodes, and equal the documented ones",
          "[graph]") {
  constexpr uint64_t kSeedStep = 0x9E3779B97F4A7C15;
  Dropped net;
  CHECK(net.count() == 0);
  for (uint64_t step = 0; step < 4; ++step) {
    CAPTURE(step);
    const auto masks = net.step();
    CHECK(masks[0] == net.mask_of(5 + kSeedStep * 1, step));
    CHECK(masks[1] == net.mask_of(5 + kSeedStep * 2, step));
    CHECK(masks[0] != masks[1]);
    CHECK(net.count() == static_cast<int64_t>(step) + 1);
    // Gradients have the mask of the values.
    const std::vector<double> dy[] = {net.g.gradient(net.y[0]), net.g.gradient(net.y[1])};
    const std::vector<double> dh = net.g.gradient(net.hidden);
    for (size_t i = 0; i < dh.size(); ++i)
      CHECK(dh[i] == Approx(dy[0][i] * masks[0][i] + dy[1][i] * masks[1][i]).epsilon(1e-6));
  }
  net.g.forward();
  CHECK(net.g.read(net.y[0]) == std::vector<double>(Dropped::kRows * Dropped::kColumns, 1.0));
  CHECK(net.count() == 4);
}

TEST_CASE("graph: a resumed run has the masks of the uninterrupted run", "[graph]") {
  Dropped one, other;
  one.step(), one.step();
  require_ok(mp_graph_set_step_sync(other.g.handle, one.count(), kStream));
  for (int step = 0; step < 3; ++step) CHECK(other.step() == one.step());
  CHECK(other.count() == 5);

  // A forward and its backward pass have equal masks, even if the step is set in between.
  one.g.forward(MP_GRAPH_MODE_TRAINING);
  require_ok(mp_graph_set_step_sync(one.g.handle, 77, kStream));
  require_ok(mp_graph_backward(one.g.handle, nullptr, kStream));
  other.step();
  CHECK(one.g.gradient(one.hidden) == other.g.gradient(other.hidden));
  require_ok(mp_graph_set_batch(one.g.handle, 2));
  CHECK(one.count() == 77);
}

TEST_CASE("graph: a bound offset selects the mask of mp_dropout, an unbound one that of the step",
          "[graph]") {
  Dropped net(true);
  const auto own = net.step();
  CHECK(net.step()[0] != own[0]);
  net.g.feed(net.offset, std::vector<uint64_t>{9});
  for (int step = 0; step < 2; ++step) CHECK(net.step()[0] == net.mask_of(5, 9));
  net.g.bind(net.offset, nullptr);
  require_ok(mp_graph_set_step_sync(net.g.handle, 0, kStream));
  CHECK(net.step() == own);
}

TEST_CASE("graph: dropout uses all 64 bits of the seed", "[graph]") {
  for (const uint64_t seed : {(uint64_t{1} << 53) + 1, ~uint64_t{0}}) {
    Dropped net(true, static_cast<int64_t>(seed));
    net.g.feed(net.offset, std::vector<uint64_t>{9});
    CHECK(net.step()[0] == net.mask_of(seed, 9));
    CHECK(net.step()[0] != net.mask_of(seed - 1, 9));
  }
}
