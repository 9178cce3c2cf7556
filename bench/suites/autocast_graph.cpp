#include "autocast_graph.h"

#include <iterator>
#include <random>

namespace mpbench {
namespace {

constexpr const char *kMatMul = "MatMul", *kBiasAdd = "BiasAdd", *kRelu = "Relu";
constexpr const char *kLayer[] = {kMatMul, kBiasAdd, kRelu};
constexpr size_t kLayers = 4 * std::size(kLayer);
/// Twice four layers, each four followed by an operation that MP_AUTOCAST_PRESET_DEFAULT denies.
constexpr size_t kPlaces = 2 * (kLayers + 1);

/// Equal names have one address, as in a host that interns them.
const char *op_at(size_t place) {
  const size_t in_half = place % (kLayers + 1);
  if (in_half < kLayers) return kLayer[in_half % std::size(kLayer)];
  return place % kPlaces == kLayers ? "Softmax" : "Exp";
}

constexpr uint64_t kSeed = 1;

}  // namespace

const char *name_of(GraphShape shape) {
  return shape == GraphShape::kChain ? "chain" : "random";
}

AutocastGraph::AutocastGraph(GraphShape shape, int32_t nodes) {
  // A standard distribution would generate other numbers with another C++ library.
  std::mt19937_64 bits(kSeed);
  const auto below = [&](size_t count) { return static_cast<size_t>(bits() % count); };
  const bool is_chain = shape == GraphShape::kChain;
  const int32_t data = add_tensor(-1, MP_TENSOR_ROLE_ACTIVATION);
  for (int32_t node = 0; node < nodes; ++node) {
    const auto before = [&] {
      if (node == 0) return data;
      return is_chain ? output_.back() : output_[below(output_.size())];
    };
    const char *const op = op_at(is_chain ? static_cast<size_t>(node) : below(kPlaces));
    std::vector<int32_t> inputs{before()};
    // Attention multiplies two activations; without such nodes a random graph would be a tree.
    const bool joins = !is_chain && op == kMatMul && below(2) == 0;
    if (joins)
      inputs.push_back(before());
    else if (op == kMatMul || op == kBiasAdd)
      inputs.push_back(add_tensor(-1, MP_TENSOR_ROLE_PARAMETER));
    add_node(op, inputs);
  }
  if (nodes > 0) tensor_role_[static_cast<size_t>(output_.back())] = MP_TENSOR_ROLE_OUTPUT;
}

int32_t AutocastGraph::add_tensor(int32_t producer, mp_tensor_role_t role) {
  tensor_producer_.push_back(producer);
  tensor_dtype_.push_back(MP_FP32);
  tensor_role_.push_back(static_cast<uint8_t>(role));
  return num_tensors() - 1;
}

void AutocastGraph::add_node(const char *op, const std::vector<int32_t> &inputs) {
  const auto node = static_cast<int32_t>(node_op_.size());
  node_op_.push_back(op);
  input_tensor_.insert(input_tensor_.end(), inputs.begin(), inputs.end());
  input_offsets_.push_back(num_inputs());
  output_.push_back(add_tensor(node, MP_TENSOR_ROLE_ACTIVATION));
}

mp_autocast_graph_t AutocastGraph::view() const {
  mp_autocast_graph_t graph;
  MP_INIT_STRUCT(&graph);
  graph.num_nodes = static_cast<uint32_t>(node_op_.size());
  graph.num_tensors = static_cast<uint32_t>(num_tensors());
  graph.node_op = node_op_.data();
  graph.input_offsets = input_offsets_.data();
  graph.input_tensor = input_tensor_.data();
  graph.tensor_producer = tensor_producer_.data();
  graph.tensor_dtype = tensor_dtype_.data();
  graph.tensor_role = tensor_role_.data();
  return graph;
}

AutocastAnswer::AutocastAnswer(const AutocastGraph &graph)
    : tensor_dtype_(static_cast<size_t>(graph.num_tensors())),
      node_dtype_(graph.view().num_nodes),
      node_why_(graph.view().num_nodes),
      input_cast_(static_cast<size_t>(graph.num_inputs())),
      node_because_(graph.view().num_nodes),
      casts_(static_cast<size_t>(graph.num_tensors())) {
  MP_INIT_STRUCT(&view_);
  view_.tensor_dtype = tensor_dtype_.data();
  view_.node_dtype = node_dtype_.data();
  view_.input_cast = input_cast_.data();
  view_.casts = casts_.data();
  view_.node_reason = node_why_.data();
  view_.node_cause = node_because_.data();
}

}  // namespace mpbench
