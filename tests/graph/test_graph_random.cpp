// Random graphs.  A graph with shared memory and fusion computes the same as a graph whose tensors
// are all outputs, which shares no memory and fuses almost nothing; gradients are the derivatives
// of the loss.
//
// Weights, biases and scales are parameters, parameters with several readers, or computed before
// or after the product that uses them.  Some nodes are dropout, some have no path to the loss, some
// are added after the loss, and some depend on it.
#include <cmath>
#include <map>
#include <numeric>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

constexpr int64_t kBatch = 4, kClasses = 3;
constexpr int64_t kHeads = 16;  // maximum number of summed logits

struct Recipe {
  uint64_t seed;
  int nodes;
  bool keeps_all;          ///< every tensor is an output, with its gradient
  bool has_kinks = false;  ///< also relu and max pooling, which are not differentiable
};

class RandomNet {
 public:
  RandomNet(const Recipe &recipe, mp_autocast_t policy) : random_(recipe.seed), recipe_(recipe) {
    add(graph.input("x", MP_FP32, {kBatch, 12}));
    add(graph.input("image", MP_FP32, {kBatch, 6, 6, 4}));
    for (int i = 0; i < recipe.nodes; ++i) add_random_node(i);
    close();
    graph.compile(policy);
    Random values(recipe.seed + 1);
    for (const int32_t parameter : graph.parameters) {
      values_.push_back(random_weights(values, graph.numel(parameter), fan_in_[values_.size()]));
      graph.write(parameter, values_.back());
    }
    graph.write(ones_, Floats32(static_cast<size_t>(graph.numel(ones_)), 1.0f));
    for (const int32_t input : {tensors_[0], tensors_[1]})
      graph.feed(input, random_values(values, graph.numel(input), 1.0));
  }

  /// Runs a step with the dropout masks of the first step.
  double step() {
    require_ok(mp_graph_set_step_sync(graph.handle, 3, kStream));
    graph.step();
    return graph.read(loss).front();
  }

  /// Returns the loss with one parameter moved by `t` along `d`.
  double loss_at(size_t parameter, const std::vector<double> &d, double t) {
    Floats32 moved = values_[parameter];
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += static_cast<float>(t * d[i]);
    graph.write(graph.parameters[parameter], moved);
    const double moved_loss = step();
    graph.write(graph.parameters[parameter], values_[parameter]);
    return moved_loss;
  }
  /// Returns the central difference quotient of the loss along `d`.
  double difference(size_t parameter, const std::vector<double> &d, double h) {
    return (loss_at(parameter, d, h) - loss_at(parameter, d, -h)) / (2 * h);
  }
  /// Returns the standard deviation of the loss's rounding errors, from fourth differences at
  /// steps so small that the differences of the exact loss vanish (More and Wild, Estimating
  /// Computational Noise, 2011).
  double noise(size_t parameter, const std::vector<double> &d) {
    constexpr int kPoints = 12, kOrder = 4;
    constexpr double kVariance = 70;  // coefficients of a fourth difference: 1 + 16 + 36 + 16 + 1
    std::vector<double> f;
    for (int i = 0; i < kPoints; ++i) f.push_back(loss_at(parameter, d, 0x1p-12 * (i - 5)));
    for (int order = 0; order < kOrder; ++order)
      for (size_t i = 0; i + 1 < f.size() - static_cast<size_t>(order); ++i) f[i] = f[i + 1] - f[i];
    f.resize(kPoints - kOrder);
    return std::sqrt(std::inner_product(f.begin(), f.end(), f.begin(), 0.0) /
                     (kVariance * static_cast<double>(f.size())));
  }

  Described graph;
  int32_t loss = -1, row_loss = -1, twice_row_loss = -1;
  std::vector<int32_t> watched;  ///< outputs that the loss does not depend on

 private:
  void add(int32_t tensor) {
    tensors_.push_back(tensor);
    is_read_[tensor] = false;
  }
  int32_t pick(int rank) {
    std::vector<int32_t> fitting;
    for (const int32_t tensor : tensors_)
      if (graph.info(tensor).rank == rank) fitting.push_back(tensor);
    const int32_t chosen =
        fitting[static_cast<size_t>(random_.integer(0, static_cast<int64_t>(fitting.size()) - 1))];
    return chosen;
  }
  int32_t made(int32_t tensor) {
    if (recipe_.keeps_all) {
      graph.output(tensor);
      graph.keep_gradient(tensor);
    }
    return tensor;
  }
  int32_t node(const char *op, int number, const std::vector<int32_t> &inputs,
               const Attributes &attributes = {}) {
    return made(
        graph.node(op, (std::string(op) + std::to_string(number)).c_str(), inputs, attributes));
  }

  bool flip() { return random_.integer(0, 1) == 1; }

  /// Returns a new parameter, or one of this shape that has other readers.
  int32_t parameter(const std::vector<int64_t> &extent, int64_t fan_in) {
    std::vector<int32_t> &same = by_extent_[extent];
    if (same.empty() || random_.integer(0, 2) > 0) {
      same.push_back(graph.parameter("p", extent));
      fan_in_.push_back(fan_in);
      return same.back();
    }
    return same[static_cast<size_t>(random_.integer(0, static_cast<int64_t>(same.size()) - 1))];
  }
  /// Returns a parameter, or a tensor computed from one or two.
  int32_t weights(const std::vector<int64_t> &extent, int64_t fan_in = 8) {
    const int number = ++num_weights_ + 2000;
    const int64_t kind = random_.integer(0, 7);
    if (kind == 0) {
      const int64_t count =
          std::accumulate(extent.begin(), extent.end(), int64_t{1}, std::multiplies<>());
      return node("Reshape", number, {parameter({count}, fan_in)}, {{"extent", extent}});
    }
    const int32_t p = parameter(extent, fan_in);
    if (kind == 1) return node("Tanh", number, {p});
    if (kind == 2) return node("Add", number, {p, parameter(extent, fan_in)});
    if (kind == 3)
      return node("Add", number, {p, node("Tanh", number + 500, {parameter(extent, fan_in)})});
    return p;
  }

  void add_random_node(int i) {
    static const char *const activations[] = {"Gelu", "Sigmoid", "Tanh", "Relu"};
    const char *const activation = activations[random_.integer(0, recipe_.has_kinks ? 3 : 2)];
    const bool is_flat = random_.integer(0, 2) > 0;
    const int32_t x = pick(is_flat ? 2 : 4);
    const mp_graph_tensor_t t = graph.info(x);
    const int64_t columns = t.extent[t.rank - 1];
    const int64_t kind = random_.integer(0, 15);
    if (kind == 8 && is_flat) return watch(graph.node(activation, "aside", {x}));
    is_read_[x] = true;
    switch (kind) {
      case 0:
      case 1:
      case 2: {
        const int64_t out = random_.integer(1, 3) * 4;
        const bool has_bias = flip();
        std::vector<int32_t> inputs = {x, is_flat ? weights({columns, out}, columns)
                                                  : weights({out, 3, 3, columns}, 9 * columns)};
        if (has_bias) inputs.push_back(weights({out}));
        const int32_t y =
            is_flat ? node("Linear", i, inputs) : node("Conv2D", i, inputs, {{"pad", 1}});
        // A bias that is computed after the product.
        return add(has_bias || flip() ? y : node("BiasAdd", 300 + i, {y, weights({out})}));
      }
      case 3:
        return add(node("BiasAdd", i, {x, weights({columns})}));
      case 4:  // a square would grow beyond fp16 within a few layers
        return add(node("Mul", i, {x, node("Sigmoid", 100 + i, {x})}));
      case 5: {
        const int32_t other = node(activation, 100 + i, {x});
        return add(node("Add", i, {x, other}));
      }
      case 6:
        if (is_flat) return add(node("Reshape", i, {x}, {{"extent", {0, 1, 1, -1}}}));
        return add(node("Reshape", i, {x}, {{"extent", {0, -1}}}));
      case 7:
        return add(node("Dropout", i, {x}, {{"p", 0.25}}));
      case 8:
        return add(node("BatchNorm", i,
                        {x, weights({columns}), weights({columns}), graph.state("mean", {columns}),
                         graph.state("variance", {columns})}));
      case 10: {
        const bool has_pixels = !is_flat && t.extent[1] >= 2 && t.extent[2] >= 2;
        return add(node(recipe_.has_kinks && has_pixels ? "MaxPool" : activation, i, {x}));
      }
      case 11: {  // a pre-norm residual
        const int32_t sum =
            node("Add", 100 + i,
                 {x, node("Dropout", 200 + i, {node(activation, 400 + i, {x})}, {{"p", 0.25}})});
        if (flip()) add(sum);
        return add(node("LayerNorm", i, {sum, weights({columns}), weights({columns})},
                        {{"epsilon", 0.125}}));
      }
      case 12:
        return add(node("RMSNorm", i, {x, weights({columns})}, {{"epsilon", 0.125}}));
      case 13:  // repeated rows
        return add(is_flat ? node("Mul", i, {x, weights({columns})})
                           : node("Add", i, {x, weights({t.extent[2], columns})}));
      case 14: {
        const int32_t wide = node("Concat", 100 + i, {x, node(activation, 200 + i, {x})});
        return add(node("Swiglu", i, {wide}));
      }
      default:
        return add(node(activation, i, {x}));
    }
  }

  void watch(int32_t tensor) {
    graph.output(tensor);
    watched.push_back(tensor);
  }

  /// Adds all tensors without readers to the logits.
  void close() {
    int32_t sum = -1;
    int number = 1000;
    for (const int32_t tensor : std::vector<int32_t>(tensors_)) {
      if (is_read_[tensor]) continue;
      const int32_t flat = node("Reshape", ++number, {tensor}, {{"extent", {0, -1}}});
      const int64_t columns = graph.info(flat).extent[1];
      const int32_t w = weights({columns, kClasses}, kHeads * columns);
      const int32_t part = node("Linear", ++number, {flat, w});
      sum = sum < 0 ? part : node("Add", ++number, {sum, part});
    }
    const std::vector<int32_t> outputs = graph.xent(sum, {0, 1, 2, 1}, 2);
    loss = outputs[0], row_loss = outputs[1];
    twice_row_loss = graph.node("Add", "twice", {row_loss, row_loss});
    watch(twice_row_loss);
    // Some of these depend on the loss and on activations, some only on activations.
    const int32_t x = pick(2);
    const int64_t columns = graph.info(x).extent[1];
    const int32_t column = graph.node("Reshape", "column", {twice_row_loss}, {{"extent", {0, 1}}});
    ones_ = graph.state("ones", {1, columns});
    const int32_t wide = graph.node("Linear", "wide", {column, ones_});
    watch(graph.node("Dropout", "late", {graph.node("Tanh", "early", {x})}));
    watch(graph.node("Mul", "scaled", {graph.node("Sigmoid", "gate", {x}), wide}));
  }

  Random random_;
  Recipe recipe_;
  std::vector<int32_t> tensors_;
  std::map<int32_t, bool> is_read_;
  std::map<std::vector<int64_t>, std::vector<int32_t>> by_extent_;
  std::vector<Floats32> values_;  ///< one per parameter
  std::vector<int64_t> fan_in_;
  int num_weights_ = 0;
  int32_t ones_ = -1;
};

double norm(const std::vector<double> &v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

/// Returns the distance of gradients from reference gradients, relative to the latter.
double distance(const RandomNet &net, const RandomNet &reference) {
  double error = 0, size = 0;
  for (size_t p = 0; p < reference.graph.parameters.size(); ++p) {
    const std::vector<double> want = reference.graph.gradient(reference.graph.parameters[p]);
    std::vector<double> got = net.graph.gradient(net.graph.parameters[p]);
    for (size_t i = 0; i < want.size(); ++i) got[i] -= want[i];
    error += norm(got) * norm(got);
    size += norm(want) * norm(want);
  }
  return std::sqrt(error / size);
}

}  // namespace

TEST_CASE("graph: random graphs with shared memory and fusion equal graphs without", "[graph]") {
  const PolicyHandle fp16 = make_policy(MP_FP16), bf16 = make_policy(MP_BF16);
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const int nodes = 4 + static_cast<int>(seed % 20);
    const bool has_kinks = seed % 3 == 2;
    CAPTURE(seed, nodes, has_kinks);
    RandomNet plain({seed, nodes, true, has_kinks}, nullptr);
    RandomNet shared({seed, nodes, false, has_kinks}, nullptr);
    plain.step();
    shared.step();
    // Equal operations on equal fp32 numbers, except for the order of bias sums.
    CHECK(shared.graph.read(shared.loss) == plain.graph.read(plain.loss));
    CHECK(distance(shared, plain) < 1e-5);
    const mp_graph_memory_t less = shared.graph.memory(), more = plain.graph.memory();
    CHECK(less.activations + less.gradients < more.activations + more.gradients);
    const auto check_watched = [&] {
      for (size_t i = 0; i < shared.watched.size(); ++i)
        CHECK(shared.graph.read(shared.watched[i]) == plain.graph.read(plain.watched[i]));
    };
    check_watched();

    // Rounding errors of up to 23 layers may grow, but not to the size of a smooth gradient.
    if (!has_kinks) {
      RandomNet mixed({seed, nodes, false}, seed % 2 == 0 ? fp16.get() : bf16.get());
      mixed.step();
      CHECK(distance(mixed, plain) < 0.5);
    }

    for (RandomNet *const net : {&plain, &shared}) net->graph.forward();
    CHECK(shared.graph.read(shared.loss) == plain.graph.read(plain.loss));
    check_watched();
  }
}

TEST_CASE("graph: gradients of random graphs equal the derivatives of the loss", "[graph]") {
  // Central differences with steps of h and h / 2 differ from the derivative by c h^2 and
  // c h^2 / 4: the second by a third of the distance between both, and by terms in h^4.  Rounding
  // adds the noise of two losses, divided by h: six standard deviations of independent errors are
  // allowed, and one unit in the last place, because small noise may be invisible in the losses.
  constexpr double kStep = 0x1p-5, kDeviations = 6;
  // Gradients are built by code of the host: on a device a part of the graphs is enough.
  for (uint64_t seed = 0; seed < (on_host() ? 60u : 24u); ++seed) {
    const int nodes = 4 + static_cast<int>(seed % 12);
    RandomNet net({seed, nodes, false}, nullptr);
    const double loss = net.step();
    CHECK(loss > 0.125);
    std::vector<std::vector<double>> gradients;
    for (const int32_t p : net.graph.parameters) gradients.push_back(net.graph.gradient(p));
    Random random(seed);
    for (int i = 0; i < 4; ++i) {
      const auto p =
          static_cast<size_t>(random.integer(0, static_cast<int64_t>(gradients.size()) - 1));
      CAPTURE(seed, nodes, p, net.graph.describe());
      const double size = norm(gradients[p]);
      std::vector<double> along = gradients[p];
      for (double &value : along) value /= size;
      const double wide = net.difference(p, along, kStep);
      const double narrow = net.difference(p, along, kStep / 2);
      const double rounding =
          (kDeviations * std::sqrt(2.0) * net.noise(p, along) + 0x1p-23 * loss) / kStep;
      CHECK(std::abs(narrow - size) <= std::abs(narrow - wide) + rounding);
      CHECK(std::abs(narrow - wide) <= size / 4 + rounding);
    }
  }
}

TEST_CASE("graph: tensors that depend on the loss are of the same pass", "[graph]") {
  const PolicyHandle fp16 = make_policy(MP_FP16);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    for (const mp_autocast_t policy : {mp_autocast_t{nullptr}, fp16.get()}) {
      CAPTURE(seed, policy != nullptr);
      RandomNet net({seed, 8, false}, policy);
      const auto check = [&] {
        const std::vector<double> rows = net.graph.read(net.row_loss);
        const std::vector<double> twice = net.graph.read(net.twice_row_loss);
        for (size_t i = 0; i < rows.size(); ++i)
          CHECK(twice[i] == Approx(2 * rows[i]).epsilon(policy != nullptr ? 0x1p-10 : 0));
      };
      for (int i = 0; i < 3; ++i) {
        net.graph.step();
        check();
      }
      net.graph.forward();
      check();
      const std::vector<double> before = net.graph.read(net.twice_row_loss);
      net.graph.bind(net.graph.labels, nullptr);
      net.graph.forward();
      CHECK(net.graph.read(net.twice_row_loss) == before);
    }
  }
}
