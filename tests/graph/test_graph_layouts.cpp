// Operations that move, sum or clip elements in graphs: exact values and gradients.
#include <algorithm>
#include <numeric>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

constexpr int64_t kA = 2, kB = 3, kC = 4;

/// Element of x: all differ, and sums are exact in 16 bits.
double value(int64_t a, int64_t b, int64_t c) {
  return static_cast<double>((a * kB + b) * kC + c + 1);
}

using Index = std::vector<int64_t>;

/// A node on x [kA kB kC], and element i of an output.
struct Case {
  const char *op;
  Index extent;
  double (*wanted)(const Index &i);
  Attributes attributes = {};
  size_t inputs = 1;  ///< number of times that x is the input
  uint32_t outputs = 1, output = 0;
};

const std::vector<Case> &cases() {
  static const std::vector<Case> all = {
      {"Concat", {2, 3, 12}, [](const Index &i) { return value(i[0], i[1], i[2] % kC); }, {}, 3},
      {"Concat",
       {2, 6, 4},
       [](const Index &i) { return value(i[0], i[1] % kB, i[2]); },
       {{"axis", 1}},
       2},
      {"Split", {2, 3, 1}, [](const Index &i) { return value(i[0], i[1], 2); }, {}, 1, 4, 2},
      {"Split",
       {2, 2, 4},
       [](const Index &i) { return value(i[0], i[1] + 1, i[2]); },
       {{"axis", 1}, {"extents", {1, 2}}},
       1,
       2,
       1},
      {"Slice",
       {2, 3, 2},
       [](const Index &i) { return value(i[0], i[1], i[2] + 1); },
       {{"begin", 1}, {"end", 3}}},
      {"Slice",
       {2, 1, 4},
       [](const Index &i) { return value(i[0], 2, i[2]); },
       {{"axis", 1}, {"begin", 2}}},
      {"Pad",
       {2, 6, 4},
       [](const Index &i) { return i[1] < 2 || i[1] > 4 ? 0.0 : value(i[0], i[1] - 2, i[2]); },
       {{"axis", -2}, {"before", 2}, {"after", 1}}},
      {"Transpose",
       {4, 2, 3},
       [](const Index &i) { return value(i[1], i[2], i[0]); },
       {{"permutation", {2, 0, 1}}}},
      {"Sum", {2, 4}, [](const Index &i) { return 3 * value(i[0], 1, i[1]); }, {{"axes", {1}}}},
      {"Sum",
       {2, 3, 1},
       [](const Index &i) { return 4 * value(i[0], i[1], 0) + 6; },
       {{"axes", {2}}, {"keep_dims", 1}}},
      {"Sum", {}, [](const Index &) { return 300.0; }, {{"axes", {0, 1, 2}}}},
      {"Sub", {2, 3, 4}, [](const Index &) { return 0.0; }, {}, 2},
      {"Div", {2, 3, 4}, [](const Index &) { return 1.0; }, {}, 2},
      {"LeakyRelu",
       {2, 3, 4},
       [](const Index &i) { return value(i[0], i[1], i[2]); },
       {{"slope", 2.0}}},
      {"Clip",
       {2, 3, 4},
       [](const Index &i) { return std::clamp(value(i[0], i[1], i[2]), 3.0, 10.0); },
       {{"min", 3.0}, {"max", 10.0}}},
      {"Mean",
       {2},
       [](const Index &i) { return 6.5 + 12.0 * static_cast<double>(i[0]); },
       {{"axes", {1, 2}}}},
      {"Mean", {3, 4}, [](const Index &i) { return value(0, i[0], i[1]) + 6; }, {{"axes", {0}}}},
  };
  return all;
}

/// Adds the node; returns the output.
int32_t node_of(Described &g, const Case &c, int32_t x) {
  return g.node_of(c.op, "n", std::vector<int32_t>(c.inputs, x), c.outputs, c.attributes)[c.output];
}

}  // namespace

TEST_CASE("graph: operations that move and sum elements are exact", "[graph]") {
  std::vector<double> x(kA * kB * kC);
  std::iota(x.begin(), x.end(), 1.0);
  for (const mp_dtype_t dtype : kDtypes) {
    const PolicyHandle policy = allow_all(dtype);
    for (const Case &c : cases()) {
      CAPTURE(c.op, mp_dtype_name(dtype), c.extent);
      Described g;
      const int32_t in = g.input("x", dtype, {kA, kB, kC});
      const int32_t y = node_of(g, c, in);
      g.output(y);
      g.compile(policy.get());
      g.feed(in, dtype, x);
      g.forward();
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
  Described g;
  const int32_t x = g.input("x", MP_FP32, {1, 4});
  const int32_t above = g.node("Clip", "above", {x}, {{"min", 0.0}});
  const int32_t below = g.node("Clip", "below", {x}, {{"max", 0.0}, {"min", -kInfinity}});
  for (const int32_t y : {above, below}) g.output(y);
  g.compile();
  g.feed(x, MP_FP32, {-kInfinity, -5, 5, kInfinity});
  g.forward();
  CHECK(g.read(above) == std::vector<double>{0, 0, 5, kInfinity});
  CHECK(g.read(below) == std::vector<double>{-kInfinity, -5, 0, 0});
}

TEST_CASE("graph: gradients of a quotient overflow only if they are large", "[graph]") {
  for (const bool is_a_trained : {false, true}) {
    CAPTURE(is_a_trained);
    Described g;
    const int32_t b = g.parameter("b", {2, 4});
    const int32_t a = is_a_trained ? g.parameter("a", {2, 4}) : g.input("a", MP_FP16, {2, 4});
    const int32_t seed = g.seed_gradient(g.node("Div", "quotient", {a, b}));
    const PolicyHandle policy = allow_all(MP_FP16);
    g.compile(policy.get());
    if (is_a_trained)
      g.write(a, Floats32(8, 100));
    else
      g.feed(a, MP_FP16, std::vector<double>(8, 100));
    g.write(b, Floats32(8, 10));
    g.feed(seed, Floats32(8, 20000));
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
    const int32_t seed = g.seed_gradient(g.node("MaxPool", "pool", {g.node("Relu", "relu", {x})}));
    const PolicyHandle policy = allow_all(dtype);
    g.compile(policy.get());
    Floats32 values;  // all differ, half of them are negative
    for (size_t i = 0; i < kNumel; ++i)
      values.push_back(static_cast<float>(7 * i % kNumel) - 15.5f);
    const Floats32 dy = {1, 2, 3, 4, 5, 6, 7, 8};
    g.write(x, values);
    g.feed(seed, dy);
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
    const int32_t y = node_of(g, c, in);
    const int32_t sum = g.node("Add", "sum", {y, g.parameter("p", c.extent)});
    g.keep_gradient(y);
    for (const int32_t input : {in, g.seed_gradient(y), g.seed_gradient(sum)})
      g.feed(input, Floats32(size_t{kA * kB * kC * kC}, 1.0f));
    g.compile();
    g.step();
    for (const double gradient : g.gradient(y)) CHECK(gradient == 2);
  }
}
