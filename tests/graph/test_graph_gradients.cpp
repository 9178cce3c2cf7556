// Gradients of every operation compared with differences of the loss, and gradients in mixed
// precision compared with fp32.
//
// All functions are smooth; test_graph_layouts.cpp has relu and max pooling.
// The central difference (L(w + h d) - L(w - h d)) / 2h of a smooth loss L differs from the
// derivative along d by h^2 / 6 times the third derivative.  Weights and inputs are around 1, and
// the third derivative is assumed to be at most 25 times the first: an error of 2^-10.  L is about
// 2 and sums about ten terms in fp32, so each loss has an error of up to 2^-20, and their
// difference over 2h one of 2^-14.  A wrong transpose, a missing sum or a wrong tensor causes an
// error of the size of the gradient.
#include <cmath>
#include <functional>
#include <numeric>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

constexpr int64_t kBatch = 6;
constexpr int64_t kClasses = 5;
constexpr double kStep = 0x1p-6;
constexpr double kCurvature = 0x1p-10, kRounding = 0x1p-14;

/// A network of one input; a Linear maps its output to the classes.
struct Subject {
  const char *name;
  std::vector<int64_t> x;  ///< extent of the input, without the batch
  std::function<int32_t(Described &, int32_t)> build;
  bool reads_integers = false;  ///< input of integers
};

class Net {
 public:
  Net(const Subject &subject, mp_autocast_t policy) : random_(7) {
    std::vector<int64_t> extent = subject.x;
    extent.insert(extent.begin(), kBatch);
    const int32_t x = graph.input("x", subject.reads_integers ? MP_DTYPE_NONE : MP_FP32, extent);
    const int64_t numel = graph.numel(x);
    int32_t y = subject.build(graph, x);
    y = graph.node("Reshape", "flat", {y}, {{"extent", {0, -1}}});
    const int64_t columns = graph.info(y).extent[1];
    const int32_t logits =
        graph.node("Linear", "head", {y, graph.parameter("head.w", {columns, kClasses})});
    loss_ = graph.xent(logits, {0, 1, 2, 3, 4, 0}).front();
    graph.compile(policy);
    for (const int32_t parameter : graph.parameters) {
      values_.push_back(random_weights(random_, graph.numel(parameter), 12));
      graph.write(parameter, values_.back());
    }
    if (subject.reads_integers) {
      std::vector<int32_t> indices(static_cast<size_t>(numel));
      for (int32_t &index : indices) index = static_cast<int32_t>(random_.integer(0, 8));
      graph.feed(x, indices);
    } else {
      graph.feed(x, random_values(random_, numel, 1.0));
    }
  }

  /// Returns the loss of a step with the dropout masks of the first step.
  double loss() {
    require_ok(mp_graph_set_step_sync(graph.handle, 0, kStream));
    graph.step();
    return graph.read(loss_).front();
  }

  /// Returns the central difference of the loss along direction `d` of one parameter.
  double difference(size_t parameter, const std::vector<double> &d) {
    const auto at = [&](double h) {
      Floats32 moved = values_[parameter];
      for (size_t i = 0; i < moved.size(); ++i) moved[i] += static_cast<float>(h * d[i]);
      graph.write(graph.parameters[parameter], moved);
      return loss();
    };
    const double difference = (at(kStep) - at(-kStep)) / (2 * kStep);
    graph.write(graph.parameters[parameter], values_[parameter]);
    return difference;
  }

  Described graph;

 private:
  Random random_;
  int32_t loss_;
  std::vector<Floats32> values_;
};

double norm(const std::vector<double> &v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

int32_t linear(Described &g, const std::string &name, int32_t x, int64_t in, int64_t out) {
  return g.node("Linear", name.c_str(),
                {x, g.parameter((name + ".w").c_str(), {in, out}),
                 g.parameter((name + ".b").c_str(), {out})});
}

int32_t recurrent(Described &g, const char *op, const std::string &name, int32_t x, int64_t in,
                  int64_t hidden, int64_t gates, std::vector<int32_t> more = {},
                  uint32_t output = 0) {
  std::vector<int32_t> inputs = {x, g.parameter((name + ".ih").c_str(), {gates * hidden, in}),
                                 g.parameter((name + ".hh").c_str(), {gates * hidden, hidden}),
                                 g.parameter((name + ".bi").c_str(), {gates * hidden}),
                                 g.parameter((name + ".bh").c_str(), {gates * hidden})};
  inputs.insert(inputs.end(), more.begin(), more.end());
  return g.node_of(op, name.c_str(), inputs, output + 1)[output];
}

const std::vector<Subject> &subjects() {
  static const std::vector<Subject> all = {
      {"activations in epilogues",
       {10},
       [](Described &g, int32_t x) {
         int32_t h = g.node("Gelu", "gelu", {linear(g, "a", x, 10, 12)});
         h = g.node("Sigmoid", "sigmoid", {linear(g, "b", h, 12, 9)});
         return g.node("Tanh", "tanh", {linear(g, "c", h, 9, 8)});
       }},
      {"activations alone",
       {10},
       [](Described &g, int32_t x) {
         // Two readers of z prevent fusion.
         const int32_t z = linear(g, "a", x, 10, 12);
         return g.node("Add", "add",
                       {g.node("Gelu", "gelu", {g.node("Sigmoid", "sigmoid", {z})}),
                        g.node("Tanh", "tanh", {g.node("Mul", "square", {z, z})})});
       }},
      {"SiLU and the exact GELU",
       {10},
       [](Described &g, int32_t x) {
         int32_t h = g.node("Silu", "silu", {linear(g, "a", x, 10, 12)});
         h = g.node("Gelu", "gelu", {linear(g, "b", h, 12, 9)}, {{"erf", 1}});
         return g.node("Add", "add",
                       {g.node("Silu", "alone", {h}), g.node("Gelu", "too", {h}, {{"erf", 1}})});
       }},
      {"residuals and gated products",
       {12},
       [](Described &g, int32_t x) {
         const int32_t h = g.node("Tanh", "tanh", {linear(g, "a", x, 12, 12)});
         const int32_t gate = g.node("Sigmoid", "gate", {linear(g, "b", h, 12, 12)});
         const int32_t sum = g.node("Add", "residual", {h, linear(g, "c", h, 12, 12)});
         return g.node("Mul", "gated", {gate, sum});
       }},
      {"a weight used twice, and transposed",
       {8},
       [](Described &g, int32_t x) {
         const int32_t w = g.parameter("tied", {8, 6});
         const int32_t h = g.node("Tanh", "down", {g.node("Linear", "fc1", {x, w})});
         return g.node(
             "Tanh", "up",
             {g.node("Linear", "fc2", {h, w, g.parameter("b", {8})}, {{"transposed", 1}})});
       }},
      {"bias in a separate node",
       {4, 6},
       [](Described &g, int32_t x) {
         const int32_t h = g.node("Linear", "fc", {x, g.parameter("w", {6, 10})});
         const int32_t b = g.node("BiasAdd", "bias", {h, g.parameter("b", {10})});
         return g.node("BiasAdd", "again", {g.node("Gelu", "gelu", {b}), g.parameter("b2", {10})});
       }},
      {"convolutions and average pooling",
       {9, 9, 4},
       [](Described &g, int32_t x) {
         int32_t h =
             g.node("Conv2D", "conv1", {x, g.parameter("f1", {8, 3, 3, 2}), g.parameter("b1", {8})},
                    {{"pad", 1}, {"groups", 2}});
         h = g.node("AvgPool", "pool1", {g.node("Tanh", "tanh1", {h})},
                    {{"window", 3}, {"stride", 2}, {"pad", 1}});
         h = g.node("Conv2D", "conv2", {h, g.parameter("f2", {6, 3, 3, 8}), g.parameter("b2", {6})},
                    {{"stride", 2}, {"dilation", 2}, {"pad", 2}});
         h = g.node("Gelu", "gelu", {h});
         return g.node("AvgPool", "pool2", {h},
                       {{"window", 2}, {"stride", 1}, {"pad", 1}, {"include_pad", 1}});
       }},
      {"upsampling by concatenation and a skip connection",
       {4, 4, 3},
       [](Described &g, int32_t x) {
         const int32_t skip = g.node("Conv2D", "down", {x, g.parameter("f", {4, 1, 1, 3})});
         int32_t h = g.node("AvgPool", "pool", {g.node("Tanh", "tanh", {skip})});
         h = g.node("Reshape", "open", {h}, {{"extent", {0, 2, 1, 2, 1, 4}}});
         h = g.node("Concat", "rows", {h, h}, {{"axis", 2}});
         h = g.node("Concat", "columns", {h, h}, {{"axis", 4}});
         h = g.node("Reshape", "close", {h}, {{"extent", {0, 4, 4, 4}}});
         h = g.node("Concat", "skip", {skip, h});
         return g.node("Conv2D", "up", {h, g.parameter("f2", {5, 3, 3, 8})}, {{"pad", 1}});
       }},
      {"batch norm",
       {5, 5, 3},
       [](Described &g, int32_t x) {
         int32_t h = g.node("Conv2D", "conv", {x, g.parameter("f", {4, 3, 3, 3})});
         h = g.node("BatchNorm", "bn",
                    {h, g.parameter("gamma", {4}), g.parameter("beta", {4}), g.state("mean", {4}),
                     g.state("variance", {4})});
         return g.node("Tanh", "tanh", {h});
       }},
      {"average pooling with ceil_mode and dilation, and batch norm without gamma and beta",
       {7, 8, 3},
       [](Described &g, int32_t x) {
         int32_t h = g.node("Conv2D", "conv", {x, g.parameter("f", {4, 3, 3, 3})});
         h = g.node("BatchNorm", "bn", {h, -1, -1, g.state("mean", {4}), g.state("variance", {4})});
         h = g.node("AvgPool", "pool", {g.node("Tanh", "tanh", {h})},
                    {{"window", 2}, {"stride", 2}, {"pad", 1}, {"dilation", 3}, {"ceil_mode", 1}});
         return g.node(
             "BatchNorm", "bn2",
             {h, -1, g.parameter("beta", {4}), g.state("mean2", {4}), g.state("variance2", {4})});
       }},
      {"dropout",
       {16},
       [](Described &g, int32_t x) {
         const int32_t h =
             g.node("Dropout", "drop", {linear(g, "a", x, 16, 12)}, {{"p", 0.25}, {"seed", 9}});
         return g.node("Tanh", "tanh", {linear(g, "b", h, 12, 8)});
       }},
      {"embedding and LSTM",
       {7},
       [](Described &g, int32_t x) {
         const int32_t e = g.node("Embedding", "table", {g.parameter("table.w", {9, 6}), x});
         return recurrent(g, "LSTM", "lstm", e, 6, 8, 4);
       },
       true},
      {"last h of two layers",
       {7, 4},
       [](Described &g, int32_t x) {
         return recurrent(g, "LSTM", "second", recurrent(g, "LSTM", "first", x, 4, 8, 4), 8, 6, 4,
                          {}, 1);
       }},
      {"h and c as initial states of another layer",
       {5, 4},
       [](Described &g, int32_t x) {
         const auto first = g.node_of("LSTM", "first",
                                      {x, g.parameter("ih", {32, 4}), g.parameter("hh", {32, 8}),
                                       g.parameter("bi", {32}), g.parameter("bh", {32})},
                                      3);
         return recurrent(g, "LSTM", "second", x, 4, 8, 4, {first[1], first[2]}, 2);
       }},
      {"GRU and plain cells",
       {6, 4},
       [](Described &g, int32_t x) {
         return recurrent(g, "RNN", "plain", recurrent(g, "GRU", "gru", x, 4, 8, 3), 8, 6, 1);
       }},
      {"residuals, dropout and layer norm",
       {5, 12},
       [](Described &g, int32_t x) {
         const int32_t a = linear(g, "a", x, 12, 12), b = linear(g, "b", x, 12, 12);
         const int32_t drop = g.node("Dropout", "drop", {a}, {{"p", 0.25}});
         const int32_t sum = g.node("Add", "residual", {b, drop});
         const int32_t norm = g.node("LayerNorm", "norm",
                                     {sum, g.parameter("gamma", {12}), g.parameter("beta", {12})});
         const int32_t c = g.node("Tanh", "tanh", {linear(g, "c", norm, 12, 12)});
         const int32_t last = g.node("Add", "residual2", {sum, c});
         return g.node("LayerNorm", "norm2", {last}, {{"groups", 2}, {"epsilon", 0.01}});
       }},
      {"RMS norm of heads",
       {5, 12},
       [](Described &g, int32_t x) {
         const int32_t h =
             g.node("RMSNorm", "norm", {linear(g, "a", x, 12, 12), g.parameter("gamma", {4})},
                    {{"groups", 3}, {"zero_centered", 1}, {"epsilon", 0.01}});
         return g.node("RMSNorm", "plain", {linear(g, "b", h, 12, 12)});
       }},
      {"packed causal attention",
       {6, 12},
       [](Described &g, int32_t x) {
         int32_t qkv = linear(g, "qkv", x, 12, 32);
         qkv = g.node("RotaryEmbedding", "rope", {qkv}, {{"heads", 8}, {"rotated_heads", 6}});
         return g.node("Attention", "attention", {qkv, -1, -1, -1, g.parameter("sinks", {4})},
                       {{"heads", 4}, {"kv_heads", 2}, {"causal", 1}, {"p", 0.25}});
       }},
      {"attention in a window",
       {6, 12},
       [](Described &g, int32_t x) {
         const Attributes rope = {{"heads", 2}, {"rotary_dim", 4}, {"interleaved", 1}};
         const int32_t q = g.node("RotaryEmbedding", "q.rope", {linear(g, "q", x, 12, 12)}, rope);
         const int32_t k = g.node("RotaryEmbedding", "k.rope", {linear(g, "k", x, 12, 12)}, rope);
         const int32_t lengths = g.input("lengths", MP_DTYPE_NONE, {kBatch});
         return g.node("Attention", "attention", {q, k, linear(g, "v", x, 12, 10), lengths},
                       {{"heads", 2}, {"window_left", 2}, {"window_right", 1}, {"scale", 0.75}});
       }},
      {"softmax and log-softmax",
       {5, 8},
       [](Described &g, int32_t x) {
         const int32_t h =
             g.node("Softmax", "softmax", {linear(g, "a", x, 8, 9)}, {{"scale", 2.0}});
         const int32_t lengths = g.input("lengths", MP_DTYPE_NONE, {kBatch, 5});
         return g.node("LogSoftmax", "log", {linear(g, "b", h, 9, 6), lengths});
       }},
      {"gated units",
       {5, 8},
       [](Described &g, int32_t x) {
         int32_t h = g.node("Swiglu", "swiglu", {linear(g, "a", x, 8, 12)});
         h = g.node("Geglu", "geglu", {linear(g, "b", h, 6, 10)});
         return g.node("Geglu", "erf", {linear(g, "c", h, 5, 8)}, {{"erf", 1}});
       }},
      {"repeated operands",
       {5, 4},
       [](Described &g, int32_t x) {
         int32_t h = linear(g, "a", x, 4, 6);
         h = g.node("Add", "positions", {h, g.parameter("table", {5, 6})});
         h = g.node("Mul", "scale", {g.node("Tanh", "tanh", {h}), g.parameter("scales", {6})});
         h = g.node("Mul", "gates", {h, g.parameter("gates", {5, 6})});
         return g.node("Add", "shift", {h, g.parameter("shifts", {6})});
       }},
      {"differences, quotients and functions with parts",
       {5, 4},
       [](Described &g, int32_t x) {
         const int32_t h = linear(g, "a", x, 4, 6);
         const int32_t positive = g.node("Sigmoid", "sigmoid", {linear(g, "b", x, 4, 6)});
         int32_t y = g.node("Sub", "table", {h, g.parameter("table", {5, 6})});
         y = g.node("Div", "quotient", {y, g.node("Add", "shifted", {positive, positive})});
         const int32_t negative =
             g.node("Sub", "negative", {g.node("Tanh", "tanh", {y}), positive});
         const int32_t minus =
             g.node("Sub", "minus", {positive, g.node("Add", "twice", {positive, positive})});
         const int32_t low = g.node("LeakyRelu", "low", {minus}, {{"slope", -2.0}});
         const int32_t gate = g.node("Sigmoid", "gate", {g.parameter("gate", {6})});
         const int32_t high = g.node("LeakyRelu", "high", {positive}, {{"slope", 0.5}});
         y = g.node("Div", "row", {g.node("Add", "sum", {negative, low}), gate});
         return g.node("Clip", "inside", {g.node("Sub", "last", {y, high})},
                       {{"min", -99.0}, {"max", 99.0}});
       }},
      {"blocks along axes",
       {4, 3, 6},
       [](Described &g, int32_t x) {
         const int32_t h = linear(g, "a", x, 6, 8);
         const auto parts = g.node_of("Split", "split", {h}, 3, {{"extents", {3, 4, 1}}});
         const int32_t t = g.node("Tanh", "tanh", {parts[1]});
         int32_t y = g.node("Concat", "concat", {t, parts[0], linear(g, "b", x, 6, 5)});
         y = g.node("Slice", "slice", {y}, {{"axis", 1}, {"begin", 1}, {"end", 3}});
         y = g.node("Pad", "pad", {y}, {{"axis", -2}, {"before", 1}, {"after", 2}});
         return g.node("Concat", "pair", {y, g.node("Slice", "same", {y})}, {{"axis", 2}});
       }},
      {"transpositions and sums over axes",
       {4, 3, 6},
       [](Described &g, int32_t x) {
         int32_t h = g.node("Transpose", "permute", {linear(g, "a", x, 6, 8)},
                            {{"permutation", {0, 3, 1, 2}}});
         h = g.node("Tanh", "tanh", {linear(g, "b", h, 3, 5)});
         const int32_t mean = g.node("Mean", "mean", {h}, {{"axes", {1, 2}}});
         const int32_t sum = g.node("Sum", "sum", {h}, {{"axes", {3}}, {"keep_dims", 1}});
         const int32_t flat = g.node("Reshape", "flat", {sum}, {{"extent", {0, -1}}});
         return g.node("Concat", "both", {mean, flat});
       }},
      {"products of matrices, each operand plain and transposed",
       {5, 8},
       [](Described &g, int32_t x) {
         const auto bounded = [&](const char *name, int64_t out) {
           return g.node("Tanh", name, {linear(g, name, x, 8, out)});
         };
         int32_t y =
             g.node("MatMul", "nt", {bounded("q", 6), bounded("k", 6)}, {{"transposed_b", 1}});
         y = g.node("MatMul", "nn", {g.node("Softmax", "softmax", {y}), bounded("v", 7)});
         y = g.node("MatMul", "tn", {y, bounded("u", 4)}, {{"transposed_a", 1}});
         return g.node("MatMul", "tt", {g.node("Softmax", "softmax2", {y}), bounded("w", 7)},
                       {{"transposed_a", 1}, {"transposed_b", 1}});
       }},
      {"mean of lengths",
       {5, 8},
       [](Described &g, int32_t x) {
         const int32_t lengths = g.input("lengths", MP_DTYPE_NONE, {kBatch});
         return g.node("Mean", "mean", {g.node("Tanh", "tanh", {linear(g, "a", x, 8, 6)}), lengths},
                       {{"axes", {1}}});
       }},
  };
  return all;
}

}  // namespace

TEST_CASE("graph: gradients are the derivatives of the loss", "[graph]") {
  for (const Subject &subject : subjects()) {
    Net net(subject, nullptr);
    net.loss();
    const size_t count = net.graph.parameters.size();
    std::vector<std::vector<double>> gradients;
    for (const int32_t parameter : net.graph.parameters)
      gradients.push_back(net.graph.gradient(parameter));
    Random random(11);
    for (size_t p = 0; p < count; ++p) {
      CAPTURE(subject.name, p);
      const std::vector<double> &g = gradients[p];
      const double size = norm(g), rms = size / std::sqrt(static_cast<double>(g.size()));
      REQUIRE(size > 1e-4);
      std::vector<double> along = g;
      for (double &value : along) value /= size;
      CHECK(std::abs(net.difference(p, along) - size) < kCurvature * size + kRounding);
      for (int i = 0; i < 3; ++i) {
        const auto element =
            static_cast<size_t>(random.integer(0, static_cast<int64_t>(g.size()) - 1));
        std::vector<double> axis(g.size());
        axis[element] = 1.0;
        CAPTURE(element);
        CHECK(std::abs(net.difference(p, axis) - g[element]) <
              kCurvature * (std::abs(g[element]) + rms) + kRounding);
      }
    }
  }
}

TEST_CASE("graph: gradients in 16 bits equal those in fp32 within rounding errors", "[graph]") {
  // At most 32 tensors are rounded between the loss and a weight, each by a relative error of at
  // most 2^-11 or 2^-8.
  for (const auto &[low, bound] : {std::pair{MP_FP16, 0x1p-6}, std::pair{MP_BF16, 0x1p-3}}) {
    const PolicyHandle policy = make_policy(low);
    for (const Subject &subject : subjects()) {
      Net wide(subject, nullptr), narrow(subject, policy.get());
      CHECK(narrow.loss() == Approx(wide.loss()).epsilon(bound));
      const std::string explained = narrow.graph.explain();
      CHECK(explained.find(" in no list") == std::string::npos);
      for (size_t p = 0; p < wide.graph.parameters.size(); ++p) {
        CAPTURE(subject.name, p, mp_dtype_name(low));
        const std::vector<double> g = wide.graph.gradient(wide.graph.parameters[p]);
        std::vector<double> error = narrow.graph.gradient(narrow.graph.parameters[p]);
        REQUIRE(error.size() == g.size());
        for (size_t i = 0; i < g.size(); ++i) error[i] -= g[i];
        CHECK(norm(error) <= bound * norm(g));
        CHECK(norm(error) > 0);
      }
    }
  }
}

TEST_CASE("graph: max pooling with stored and with recomputed positions", "[graph][short]") {
  for (const int32_t window : {2, 15, 16}) {
    Described g;
    const int32_t x = g.parameter("x", {2, 17, 18, 3});
    const int32_t y = g.node("MaxPool", "pool", {x}, {{"window", window}, {"stride", 1}});
    const int32_t seed = g.seed_gradient(y);
    g.compile(nullptr);
    mp_pool2d_desc_t desc =
        mp_pool2d_desc_default(MP_POOL_MAX, 2, 17, 18, 3, window, window, MP_FP32);
    desc.stride_h = desc.stride_w = 1;
    const int64_t elems = 2 * 17 * 18 * 3, outputs = 2 * (18 - window) * (19 - window) * 3;
    Random random(8);
    const Floats32 values = random_values(random, elems, 1.0);
    const DeviceBuffer<float> dy(random_values(random, outputs, 1.0)), of_x(values), dx(elems);
    g.write(x, values);
    g.bind(seed, dy.data());
    g.step();
    require_ok(mp_pool2d_backward(context(), &desc, of_x.data(), nullptr, dy.data(), dx.data(),
                                  nullptr, kStream));
    const std::vector<double> gradient = g.gradient(x);
    const Floats32 wanted = dx.download();
    CAPTURE(window, g.describe());
    CHECK(std::ranges::equal(gradient, wanted));
    const auto planned = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
    CHECK(g.memory().activations_unshared ==
          2 * planned(4 * outputs) + (window < 16 ? planned(outputs) : 0));
  }
}
