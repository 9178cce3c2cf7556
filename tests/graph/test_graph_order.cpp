// Order of execution and memory of graphs: no tensor is read before it is written, and no two
// gradients of parameters share memory.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

/// Row of small integers, whose sums are exact.
Floats32 whole_numbers(int64_t count, int first) {
  Floats32 values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((first + i) % 7 - 3));
  return values;
}

}  // namespace

TEST_CASE("graph: a bias that is computed after its product is added after it", "[graph]") {
  for (const bool is_convolution : {false, true}) {
    for (const bool is_behind : {false, true}) {
      CAPTURE(is_convolution, is_behind);
      Described g;
      const int32_t x =
          is_convolution ? g.input("x", MP_FP32, {2, 1, 1, 3}) : g.input("x", MP_FP32, {2, 3});
      const int32_t w = is_convolution ? g.parameter("w", {5, 1, 1, 3}) : g.parameter("w", {3, 5});
      const int32_t b0 = g.parameter("b0", {5}), b1 = g.parameter("b1", {5});
      int32_t b = is_behind ? -1 : g.node("Add", "b", {b0, b1});
      const int32_t z = g.node(is_convolution ? "Conv2D" : "Linear", "product", {x, w});
      if (is_behind) b = g.node("Add", "b", {b0, b1});
      const int32_t y = g.node("BiasAdd", "bias", {z, b});
      g.output(y);
      g.xent(g.node("Reshape", "flat", {y}, {{"extent", {0, 5}}}), {0, 0});
      g.compile();
      CHECK(has(g.describe(), "forward  product, bias  ") == !is_behind);
      g.feed(x, whole_numbers(6, 1));
      g.write(w, whole_numbers(15, 2));
      for (int step = 0; step < 3; ++step) {
        g.write(b0, whole_numbers(5, step));
        g.write(b1, whole_numbers(5, 2 * step + 3));
        g.step();
        const Floats32 x_values = whole_numbers(6, 1), w_values = whole_numbers(15, 2);
        const Floats32 first = whole_numbers(5, step), second = whole_numbers(5, 2 * step + 3);
        std::vector<double> want;
        for (size_t row = 0; row < 2; ++row)
          for (size_t column = 0; column < 5; ++column) {
            double sum = first[column] + second[column];
            for (size_t k = 0; k < 3; ++k)
              sum += x_values[3 * row + k] *
                     w_values[is_convolution ? 3 * column + k : 5 * k + column];
            want.push_back(sum);
          }
        CHECK(g.read(y) == want);
      }
    }
  }
}

TEST_CASE("graph: a bias that is an input must be bound, fused or not", "[graph]") {
  for (const bool is_fused : {false, true}) {
    CAPTURE(is_fused);
    Described g;
    const int32_t x = g.input("x", MP_FP32, {4, 3});
    const int32_t b = g.input("b", MP_FP32, {4});
    const int32_t z = g.node("Linear", "fc", {x, g.parameter("w", {3, 4})});
    if (!is_fused) g.output(z);
    g.output(g.node("BiasAdd", "bias", {z, b}));
    g.compile();
    CHECK(has(g.describe(), "forward  fc, bias  mp_gemm") == is_fused);
    g.feed(x, whole_numbers(12, 0));
    expect_status(mp_graph_forward(g.handle, MP_GRAPH_MODE_INFERENCE, kStream),
                  MP_ERROR_INVALID_ARGUMENT);
    CHECK(has(mp_last_error(), "input b is not bound"));
  }
}

TEST_CASE("graph: a bias gradient from an epilogue is cast for its readers", "[graph]") {
  // The bias has another shape in the list of parameters, so the view of its gradient has 16 bits.
  const PolicyHandle policy = make_policy(MP_FP16);
  const auto gradient = [&](mp_autocast_t low) {
    Described g;
    const int32_t x = g.input("x", MP_FP32, {2, 4, 4, 8});
    const int32_t row = g.parameter("row", {8, 1});
    const int32_t b = g.node("Reshape", "b", {row}, {{"extent", {8}}});
    int32_t y = g.node("Conv2D", "first", {x, g.parameter("f1", {8, 1, 1, 8}), b});
    y = g.node("Conv2D", "second", {y, g.parameter("f2", {8, 1, 1, 8})});
    y = g.node("Reshape", "flat", {y}, {{"extent", {0, -1}}});
    g.xent(y, {3, 70});
    g.compile(low);
    CHECK(has(g.describe(), "first/grad_w's bias"));
    g.feed(x, whole_numbers(256, 1));
    for (size_t i = 1; i < 3; ++i) {
      Floats32 small = whole_numbers(64, static_cast<int>(i));
      for (float &value : small) value /= 16;
      g.write(g.parameters[i], small);
    }
    g.step();
    return g.gradient(row);
  };
  const std::vector<double> want = gradient(nullptr), got = gradient(policy.get());
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  CHECK(largest > 0.01);
  for (size_t i = 0; i < want.size(); ++i) CHECK(std::abs(got[i] - want[i]) < largest / 16);
}

TEST_CASE("graph: the gradients of added parameters have separate memory", "[graph]") {
  struct Sharing {
    const char *name;
    int32_t (*build)(Described &g, int32_t x);
  };
  const Sharing sharings[] = {
      {"two biases",
       [](Described &g, int32_t x) {
         const int32_t b = g.node("Add", "b", {g.parameter("b0", {2}), g.parameter("b1", {2})});
         return g.node("Linear", "fc", {x, g.parameter("w", {3, 2}), b});
       }},
      {"two weights, one of another shape",
       [](Described &g, int32_t x) {
         const int32_t turned =
             g.node("Reshape", "turned", {g.parameter("w1", {6})}, {{"extent", {3, 2}}});
         const int32_t w = g.node("Add", "w", {g.parameter("w0", {3, 2}), turned});
         return g.node("Linear", "fc", {x, w});
       }},
      {"a bias that is added to a bias",
       [](Described &g, int32_t x) {
         const int32_t row =
             g.node("Reshape", "row", {g.parameter("b0", {2})}, {{"extent", {1, 2}}});
         const int32_t sum = g.node("BiasAdd", "sum", {row, g.parameter("b1", {2})});
         const int32_t b = g.node("Reshape", "b", {sum}, {{"extent", {2}}});
         return g.node("Linear", "fc", {x, g.parameter("w", {3, 2}), b});
       }},
      {"a kept gradient",
       [](Described &g, int32_t x) {
         const int32_t b = g.node("Add", "b", {g.parameter("b0", {2}), g.parameter("b1", {2})});
         g.keep_gradient(b);
         return g.node("Linear", "fc", {x, g.parameter("w", {3, 2}), b});
       }},
  };
  for (const mp_dtype_t low : {MP_FP32, MP_BF16}) {
    for (const Sharing &sharing : sharings) {
      CAPTURE(sharing.name, mp_dtype_name(low));
      Described g;
      const int32_t x = g.input("x", MP_FP32, {4, 3});
      g.xent(sharing.build(g, x), {0, 1, 1, 1});
      const PolicyHandle policy = low != MP_FP32 ? make_policy(low) : nullptr;
      g.compile(policy.get());
      g.feed(x, whole_numbers(12, 1));
      const ScalerHandle scaler = make_scaler(MP_SCALER_POLICY_STATIC, 65536);
      g.step(scaler.get());
      std::set<void *> places;
      std::vector<std::vector<double>> scaled;
      for (const int32_t p : g.parameters) {
        places.insert(g.info(p).grad);
        scaled.push_back(g.gradient(p));
      }
      CHECK(places.size() == g.parameters.size());
      const int32_t kept = g.parameters[1] + 1;  // tensor computed from b1
      const bool has_kept = g.info(kept).grad != nullptr && g.info(kept).name[0] == 'b';
      const std::vector<double> before = has_kept ? g.gradient(kept) : std::vector<double>();
      mp_tensor_list_t grads = nullptr;
      require_ok(mp_graph_get_lists(g.handle, &grads, nullptr, nullptr));
      if (low != MP_FP32) continue;
      require_ok(mp_grads_to_fp32(scaler.get(), grads, grads, kStream));
      for (size_t i = 0; i < scaled.size(); ++i) {
        const std::vector<double> got = g.gradient(g.parameters[i]);
        for (size_t j = 0; j < got.size(); ++j) CHECK(got[j] == scaled[i][j] / 65536);
        CHECK(std::any_of(got.begin(), got.end(), [](double v) { return v != 0; }));
      }
      if (has_kept) CHECK(g.gradient(kept) == before);
    }
  }
}

TEST_CASE("graph: a second loss requires its labels if it is read", "[graph]") {
  for (const bool is_read : {false, true}) {
    CAPTURE(is_read);
    Described g;
    const int32_t x = g.input("x", MP_FP32, {4, 3});
    const int32_t others = g.input("others", MP_DTYPE_NONE, {4});
    const int32_t y = g.node("Linear", "fc", {x, g.parameter("w", {3, 5})});
    const auto beside = g.node_of("SoftmaxXent", "beside", {y, others}, 2);
    const int32_t twice = is_read ? g.node("Add", "twice", {beside[1], beside[1]}) : -1;
    if (is_read) g.output(twice);
    g.xent(y, {0, 0, 0, 0});
    g.compile();
    g.feed(x, whole_numbers(12, 0));
    const mp_status_t status = mp_graph_forward(g.handle, MP_GRAPH_MODE_TRAINING, kStream);
    CHECK(status == (is_read ? MP_ERROR_INVALID_ARGUMENT : MP_SUCCESS));
    if (!is_read) continue;
    CHECK(has(mp_last_error(), "input others is not bound"));
    g.feed(others, std::vector<int32_t>{1, 2, 3, 4});
    g.step();
    std::vector<double> rows = g.read(beside[1]);
    for (double &row : rows) row *= 2;
    CHECK(g.read(twice) == rows);
  }
}

TEST_CASE("graph: nodes that depend on the loss run after it", "[graph]") {
  Described g;
  const int32_t x = g.input("x", MP_FP32, {4, 3});
  const int32_t y = g.node("Linear", "fc", {x, g.parameter("w", {3, 5})});
  const int32_t rows = g.xent(y, {}, 2)[1];
  g.output(g.node("Tanh", "late", {g.node("Add", "twice", {rows, rows})}));
  g.output(g.node("Tanh", "early", {y}));
  g.compile();
  const std::string text = g.describe();
  const auto at = [&](const char *line) {
    const size_t found = text.find(line);
    CHECK(found != std::string::npos);
    return found;
  };
  CHECK(at("forward  fc, early") < at("inference  loss  mp_softmax_xent"));
  CHECK(at("inference  loss  mp_softmax_xent") < at("backward  loss/grad_logits"));
  CHECK(at("backward  loss/grad_logits") < at("inference  twice"));
  CHECK(at("inference  twice") < at("inference  late"));
  CHECK(at("inference  late") < at("backward  fc/grad_w"));
}
