// Random graphs: what shares memory and is fused computes what the same graph does in which every tensor is an output,
// so that nothing is shared and next to nothing fused.
#include <cmath>
#include <map>
#include <numeric>

#include "tests/graph/described.h"

using namespace mptest;

namespace {

constexpr int64_t kBatch = 4, kClasses = 3;

struct Recipe {
  uint64_t seed;
  int nodes;
  bool keeps_all;  ///< every tensor is an output, with its gradient
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
    for (const int32_t parameter : graph.parameters)
      graph.write(parameter, random_weights(values, numel(parameter), 8));
    for (const int32_t input : {tensors_[0], tensors_[1]}) {
      inputs_.push_back(
          std::make_unique<DeviceBuffer<float>>(random_values(values, numel(input), 1.0)));
      graph.bind(input, inputs_.back()->data());
    }
    labels_ = std::make_unique<DeviceBuffer<int32_t>>(std::vector<int32_t>{0, 1, 2, 1});
    graph.bind(labels_tensor_, labels_->data());
  }

  Described graph;
  int32_t loss = -1;

 private:
  int64_t numel(int32_t tensor) const {
    const mp_graph_tensor_t t = graph.info(tensor);
    return std::accumulate(t.extent, t.extent + t.rank, int64_t{1}, std::multiplies<>());
  }
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
    is_read_[chosen] = true;
    return chosen;
  }
  int32_t made(int32_t tensor) {
    if (recipe_.keeps_all) {
      graph.output(tensor);
      require_ok(mp_graph_keep_gradient(graph.handle, tensor));
    }
    return tensor;
  }
  int32_t node(const char *op, int number, const std::vector<int32_t> &inputs,
               const Attributes &attributes = {}) {
    return made(
        graph.node(op, (std::string(op) + std::to_string(number)).c_str(), inputs, attributes));
  }

  void add_random_node(int i) {
    static const char *const activations[] = {"Gelu", "Sigmoid", "Tanh"};
    const char *const activation = activations[random_.integer(0, 2)];
    const bool is_flat = random_.integer(0, 2) > 0;
    const int32_t x = pick(is_flat ? 2 : 4);
    const mp_graph_tensor_t t = graph.info(x);
    const int64_t columns = t.extent[t.rank - 1];
    switch (random_.integer(0, 8)) {
      case 0:
      case 1:
      case 2: {
        const int64_t out = random_.integer(1, 3) * 4;
        const bool has_bias = random_.integer(0, 1) == 1;
        if (is_flat) {
          std::vector<int32_t> inputs = {x, graph.parameter("w", {columns, out})};
          if (has_bias) inputs.push_back(graph.parameter("b", {out}));
          return add(node("Linear", i, inputs));
        }
        std::vector<int32_t> inputs = {x, graph.parameter("f", {out, 3, 3, columns})};
        if (has_bias) inputs.push_back(graph.parameter("b", {out}));
        return add(node("Conv2D", i, inputs, {{"pad", 1}}));
      }
      case 3:
        return add(node("BiasAdd", i, {x, graph.parameter("b", {columns})}));
      case 4:  // a square would grow beyond fp16 within a few layers
        return add(node("Mul", i, {x, node("Sigmoid", 100 + i, {x})}));
      case 5: {
        const int32_t other = node(activation, 100 + i, {x});
        return add(node("Add", i, {x, other}));
      }
      case 6:
        if (is_flat)
          return add(node("Reshape", i, {x},
                          {{"extent", 0}, {"extent", 1}, {"extent", 1}, {"extent", -1}}));
        return add(node("Reshape", i, {x}, {{"extent", 0}, {"extent", -1}}));
      default:
        return add(node(activation, i, {x}));
    }
  }

  /// Whatever nobody has read goes into the logits.
  void close() {
    int32_t sum = -1;
    int number = 1000;
    for (const int32_t tensor : std::vector<int32_t>(tensors_)) {
      if (is_read_[tensor]) continue;
      const int32_t flat = node("Reshape", ++number, {tensor}, {{"extent", 0}, {"extent", -1}});
      const int32_t w = graph.parameter("head", {graph.info(flat).extent[1], kClasses});
      const int32_t part = node("Linear", ++number, {flat, w});
      sum = sum < 0 ? part : node("Add", ++number, {sum, part});
    }
    labels_tensor_ = graph.input("labels", MP_DTYPE_NONE, {kBatch});
    loss = graph.node("SoftmaxXent", "loss", {sum, labels_tensor_});
    graph.loss(loss);
  }

  Random random_;
  Recipe recipe_;
  std::vector<int32_t> tensors_;
  std::map<int32_t, bool> is_read_;
  std::vector<std::unique_ptr<DeviceBuffer<float>>> inputs_;
  std::unique_ptr<DeviceBuffer<int32_t>> labels_;
  int32_t labels_tensor_ = -1;
};

double norm(const std::vector<double> &v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

/// How far gradients are from others, relative to these.
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

TEST_CASE("graph: random graphs, shared and fused, against unshared and plain", "[graph]") {
  const PolicyHandle fp16 = make_policy(MP_FP16), bf16 = make_policy(MP_BF16);
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const int nodes = 4 + static_cast<int>(seed % 20);
    CAPTURE(seed, nodes);
    RandomNet plain({seed, nodes, true}, nullptr), shared({seed, nodes, false}, nullptr);
    plain.graph.step();
    shared.graph.step();
    // The same operations on the same fp32 numbers; sums of biases come in two orders.
    CHECK(shared.graph.read(shared.loss) == plain.graph.read(plain.loss));
    CHECK(distance(shared, plain) < 1e-5);
    const mp_graph_memory_t less = shared.graph.memory(), more = plain.graph.memory();
    CHECK(less.activations + less.gradients < more.activations + more.gradients);

    // The roundings of up to 23 layers may grow, but not to the size of the whole.
    RandomNet mixed({seed, nodes, false}, seed % 2 == 0 ? fp16.get() : bf16.get());
    mixed.graph.step();
    CHECK(distance(mixed, plain) < 0.5);
  }
}
