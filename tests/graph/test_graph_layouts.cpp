// Operations that move, sum or clip elements in graphs: exact values and gradients, and training
// of a U-Net.
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

// ---------------------------------------------------------------------------- values

constexpr int64_t kA = 2, kB = 3, kC = 4;

/// Element of x: all differ, and sums are exact in 16 bits.
double value(int64_t a, int64_t b, int64_t c) {
  return static_cast<double>((a * kB + b) * kC + c + 1);
}

/// A node on x [kA kB kC], and element i of an output.
struct Case {
  const char *op;
  Attributes attributes;
  uint32_t outputs;
  size_t output;
  int inputs;  ///< number of times that x is the input
  std::vector<int64_t> extent;
  std::function<double(const std::vector<int64_t> &)> wanted;
};

using Index = std::vector<int64_t>;

const std::vector<Case> &cases() {
  static const std::vector<Case> all = {
      {"Concat",
       {},
       1,
       0,
       3,
       {2, 3, 12},
       [](const Index &i) { return value(i[0], i[1], i[2] % kC); }},
      {"Concat",
       {{"axis", 1}},
       1,
       0,
       2,
       {2, 6, 4},
       [](const Index &i) { return value(i[0], i[1] % kB, i[2]); }},
      {"Split", {}, 4, 2, 1, {2, 3, 1}, [](const Index &i) { return value(i[0], i[1], 2); }},
      {"Split",
       {{"axis", 1}, {"extents", {1, 2}}},
       2,
       1,
       1,
       {2, 2, 4},
       [](const Index &i) { return value(i[0], i[1] + 1, i[2]); }},
      {"Slice",
       {{"begin", 1}, {"end", 3}},
       1,
       0,
       1,
       {2, 3, 2},
       [](const Index &i) { return value(i[0], i[1], i[2] + 1); }},
      {"Slice",
       {{"axis", 1}, {"begin", 2}},
       1,
       0,
       1,
       {2, 1, 4},
       [](const Index &i) { return value(i[0], 2, i[2]); }},
      {"Pad",
       {{"axis", -2}, {"before", 2}, {"after", 1}},
       1,
       0,
       1,
       {2, 6, 4},
       [](const Index &i) { return i[1] < 2 || i[1] > 4 ? 0.0 : value(i[0], i[1] - 2, i[2]); }},
      {"Transpose",
       {{"permutation", {2, 0, 1}}},
       1,
       0,
       1,
       {4, 2, 3},
       [](const Index &i) { return value(i[1], i[2], i[0]); }},
      {"Sum",
       {{"axes", {1}}},
       1,
       0,
       1,
       {2, 4},
       [](const Index &i) { return 3 * value(i[0], 1, i[1]); }},
      {"Sum",
       {{"axes", {2}}, {"keep_dims", 1}},
       1,
       0,
       1,
       {2, 3, 1},
       [](const Index &i) { return 4 * value(i[0], i[1], 0) + 6; }},
      {"Sum", {{"axes", {0, 1, 2}}}, 1, 0, 1, {}, [](const Index &) { return 300.0; }},
      {"Sub", {}, 1, 0, 2, {2, 3, 4}, [](const Index &) { return 0.0; }},
      {"Div", {}, 1, 0, 2, {2, 3, 4}, [](const Index &) { return 1.0; }},
      {"LeakyRelu",
       {{"slope", 2.0}},
       1,
       0,
       1,
       {2, 3, 4},
       [](const Index &i) { return value(i[0], i[1], i[2]); }},
      {"Clip",
       {{"min", 3.0}, {"max", 10.0}},
       1,
       0,
       1,
       {2, 3, 4},
       [](const Index &i) { return std::clamp(value(i[0], i[1], i[2]), 3.0, 10.0); }},
      {"Mean",
       {{"axes", {1, 2}}},
       1,
       0,
       1,
       {2},
       [](const Index &i) { return 6.5 + 12.0 * static_cast<double>(i[0]); }},
      {"Mean",
       {{"axes", {0}}},
       1,
       0,
       1,
       {3, 4},
       [](const Index &i) { return value(0, i[0], i[1]) + 6; }},
  };
  return all;
}

}  // namespace

TEST_CASE("graph: operations that move and sum elements are exact", "[graph]") {
  std::vector<double> x(kA * kB * kC);
  std::iota(x.begin(), x.end(), 1.0);
  for (const mp_dtype_t dtype : kDtypes) {
    const DeviceArray data(dtype, x);
    const PolicyHandle policy = dtype != MP_FP32 ? make_policy(dtype) : nullptr;
    if (policy != nullptr) require_ok(mp_autocast_set_nodes(policy.get(), "*", MP_OP_CLASS_ALLOW));
    for (const Case &c : cases()) {
      CAPTURE(c.op, mp_dtype_name(dtype), c.extent);
      Described g;
      const int32_t in = g.input("x", dtype, {kA, kB, kC});
      const int32_t y =
          g.node_of(c.op, "n", std::vector<int32_t>(static_cast<size_t>(c.inputs), in), c.outputs,
                    c.attributes)[c.output];
      g.output(y);
      g.compile(policy.get());
      g.bind(in, data.data());
      require_ok(mp_graph_forward(g.handle, MP_GRAPH_MODE_INFERENCE, kStream));
      const mp_graph_tensor_t info = g.info(y);
      REQUIRE(Index(info.extent, info.extent + info.rank) == c.extent);
      CHECK(info.dtype == dtype);
      const std::vector<double> got = g.read(y);
      for (size_t n = 0; n < got.size(); ++n) {
        Index index(c.extent.size());
        auto rest = static_cast<int64_t>(n);
        for (size_t i = index.size(); i-- > 0; rest /= c.extent[i]) index[i] = rest % c.extent[i];
        CHECK(got[n] == round_to(dtype, c.wanted(index)));
      }
    }
  }
}

TEST_CASE("graph: a clip with one bound keeps infinities beyond the other", "[graph]") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Described g;
  const int32_t x = g.input("x", MP_FP32, {1, 4});
  const int32_t above = g.node("Clip", "above", {x}, {{"min", 0.0}});
  const int32_t below = g.node("Clip", "below", {x}, {{"max", 0.0}, {"min", -kInf}});
  for (const int32_t y : {above, below}) g.output(y);
  g.compile();
  const DeviceArray data(MP_FP32, std::vector<double>{-kInf, -5, 5, kInf});
  g.bind(x, data.data());
  require_ok(mp_graph_forward(g.handle, MP_GRAPH_MODE_INFERENCE, kStream));
  CHECK(g.read(above) == std::vector<double>{0, 0, 5, kInf});
  CHECK(g.read(below) == std::vector<double>{-kInf, -5, 0, 0});
}

TEST_CASE("graph: gradients of a quotient overflow only if they are large", "[graph]") {
  for (const bool is_a_trained : {false, true}) {
    CAPTURE(is_a_trained);
    Described g;
    const int32_t b = g.parameter("b", {2, 4});
    const int32_t a = is_a_trained ? g.parameter("a", {2, 4}) : g.input("a", MP_FP16, {2, 4});
    int32_t seed;
    require_ok(mp_graph_seed_gradient(g.handle, g.node("Div", "quotient", {a, b}), &seed));
    const PolicyHandle policy = make_policy(MP_FP16);
    require_ok(mp_autocast_set_nodes(policy.get(), "*", MP_OP_CLASS_ALLOW));
    g.compile(policy.get());
    const DeviceArray hundreds(MP_FP16, std::vector<double>(8, 100));
    if (is_a_trained)
      g.write(a, Floats32(8, 100));
    else
      g.bind(a, hundreds.data());
    g.write(b, Floats32(8, 10));
    const DeviceBuffer<float> dy(Floats32(8, 20000));
    g.bind(seed, dy.data());
    g.step();
    for (const double gradient : g.gradient(b)) CHECK(gradient == -20000);
    if (is_a_trained)
      for (const double gradient : g.gradient(a)) CHECK(gradient == 2000);
  }
}

TEST_CASE("graph: gradients of relu and max pooling are exact", "[graph][short]") {
  constexpr size_t kSide = 4, kChannels = 2, kNumel = kSide * kSide * kChannels;
  for (const mp_dtype_t dtype : kDtypes) {
    CAPTURE(mp_dtype_name(dtype));
    Described g;
    const int32_t x = g.parameter("x", {1, 4, 4, 2});
    int32_t seed;
    require_ok(mp_graph_seed_gradient(
        g.handle, g.node("MaxPool", "pool", {g.node("Relu", "relu", {x})}), &seed));
    const PolicyHandle policy = dtype != MP_FP32 ? make_policy(dtype) : nullptr;
    if (policy != nullptr) require_ok(mp_autocast_set_nodes(policy.get(), "*", MP_OP_CLASS_ALLOW));
    g.compile(policy.get());
    Floats32 values;  // all differ, half of them are negative
    for (size_t i = 0; i < kNumel; ++i)
      values.push_back(static_cast<float>(7 * i % kNumel) - 15.5f);
    const Floats32 dy = {1, 2, 3, 4, 5, 6, 7, 8};
    const DeviceBuffer<float> from_outside(dy);
    g.write(x, values);
    g.bind(seed, from_outside.data());
    g.step();
    std::vector<double> wanted(values.size());
    for (size_t to = 0; to < dy.size(); ++to) {
      const size_t column = to / kChannels % 2, row = to / kChannels / 2;
      size_t largest = 0;  // of the 2 x 2 pixels of an output
      for (const size_t pixel : {size_t{0}, size_t{1}, kSide, kSide + 1}) {
        const size_t at = ((2 * row * kSide + 2 * column) + pixel) * kChannels + to % kChannels;
        if (pixel == 0 || values[at] > values[largest]) largest = at;
      }
      if (values[largest] > 0) wanted[largest] = dy[to];
    }
    CHECK(g.gradient(x) == wanted);
  }
}

TEST_CASE("graph: results of inputs keep gradients although inputs have none", "[graph]") {
  for (const Case &c : cases()) {
    if (c.extent.empty()) continue;  // cannot be added to a parameter
    CAPTURE(c.op, c.extent);
    Described g;
    const int32_t in = g.input("x", MP_FP32, {kA, kB, kC});
    const int32_t y = g.node_of(c.op, "n", std::vector<int32_t>(static_cast<size_t>(c.inputs), in),
                                c.outputs, c.attributes)[c.output];
    const int32_t sum = g.node("Add", "sum", {y, g.parameter("p", c.extent)});
    require_ok(mp_graph_keep_gradient(g.handle, y));
    int32_t seeds[2];
    require_ok(mp_graph_seed_gradient(g.handle, y, &seeds[0]));
    require_ok(mp_graph_seed_gradient(g.handle, sum, &seeds[1]));
    g.compile();
    const DeviceBuffer<float> data(Floats32(size_t{kA * kB * kC * kC}, 1.0f));
    for (const int32_t input : {in, seeds[0], seeds[1]}) g.bind(input, data.data());
    g.step();
    for (const double gradient : g.gradient(y)) CHECK(gradient == 2);
  }
}

// ---------------------------------------------------------------------------- a U-Net

namespace {

constexpr int64_t kBatch = 3, kSide = 8, kClasses = 3;

/// One level: convolution, pooling, convolution, upsampling by concatenation, skip connection.
class UNet {
 public:
  explicit UNet(mp_autocast_t policy) : random_(9) {
    const int32_t x = graph.input("x", MP_FP32, {kBatch, kSide, kSide, 2});
    const int32_t labels = graph.input("labels", MP_DTYPE_NONE, {kBatch, kSide, kSide});
    const int32_t skip = conv("down", x, 2, 8);
    int32_t h = conv("bottom", graph.node("MaxPool", "pool", {skip}), 8, 8);
    h = graph.node("Reshape", "open", {h}, {{"extent", {0, kSide / 2, 1, kSide / 2, 1, 8}}});
    h = graph.node("Concat", "rows", {h, h}, {{"axis", 2}});
    h = graph.node("Concat", "columns", {h, h}, {{"axis", 4}});
    h = graph.node("Reshape", "close", {h}, {{"extent", {0, kSide, kSide, 8}}});
    h = conv("up", graph.node("Concat", "skip", {skip, h}), 16, 8);
    h = graph.node("Conv2D", "head", {h, filter("head.w", {kClasses, 1, 1, 8})});
    loss_ = graph.node("SoftmaxXent", "loss", {h, labels});
    graph.loss(loss_);
    graph.compile(policy);
    std::vector<int64_t> numel;
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      const mp_graph_tensor_t t = graph.info(graph.parameters[i]);
      numel.push_back(
          std::accumulate(t.extent, t.extent + t.rank, int64_t{1}, std::multiplies<>()));
      graph.write(graph.parameters[i], random_weights(random_, numel.back(), fan_in_[i]));
    }
    const Floats32 values = random_values(random_, kBatch * kSide * kSide * 2, 1.0);
    std::vector<int32_t> classes;
    for (size_t i = 0; i < values.size(); i += 2)
      classes.push_back(values[i] > values[i + 1] ? 1 : values[i] > 0 ? 2 : 0);
    x_ = std::make_unique<DeviceBuffer<float>>(values);
    labels_ = std::make_unique<DeviceBuffer<int32_t>>(classes);
    graph.bind(x, x_->data());
    graph.bind(labels, labels_->data());
    mp_tensor_list_t grads, master, model;
    require_ok(mp_graph_get_lists(graph.handle, &grads, &master, &model));
    trainer_ = std::make_unique<Trainer>(grads, master, model, numel);
  }

  double step() {
    graph.step();
    trainer_->step(nullptr);
    return graph.read(loss_).front();
  }

  Described graph;

 private:
  int32_t filter(const char *name, const std::vector<int64_t> &extent) {
    fan_in_.push_back(extent[1] * extent[2] * extent[3]);
    return graph.parameter(name, extent);
  }
  int32_t conv(const std::string &name, int32_t x, int64_t in, int64_t out) {
    const int32_t w = filter((name + ".w").c_str(), {out, 3, 3, in});
    return graph.node("Relu", (name + ".relu").c_str(),
                      {graph.node("Conv2D", name.c_str(), {x, w}, {{"pad", 1}})});
  }

  Random random_;
  int32_t loss_;
  std::vector<int64_t> fan_in_;
  std::unique_ptr<DeviceBuffer<float>> x_;
  std::unique_ptr<DeviceBuffer<int32_t>> labels_;
  std::unique_ptr<Trainer> trainer_;
};

std::vector<double> results_of(mp_dtype_t dtype) {
  const PolicyHandle policy = dtype != MP_FP32 ? make_policy(dtype) : nullptr;
  UNet net(policy.get());
  std::vector<double> results;
  for (int step = 0; step < 20; ++step) results.push_back(net.step());
  for (const float weight : net.graph.masters()) results.push_back(weight);
  return results;
}

}  // namespace

TEST_CASE("graph: training of a U-Net reduces its loss and is reproducible", "[graph]") {
  for (const mp_dtype_t dtype : kDtypes) {
    const std::vector<double> results = results_of(dtype);
    CAPTURE(mp_dtype_name(dtype), results[0], results[19]);
    CHECK(results[19] < 0.7 * results[0]);
    CHECK(results_of(dtype) == results);
  }
}
