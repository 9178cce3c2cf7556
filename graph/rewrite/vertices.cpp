#include "graph/rewrite/vertices.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

namespace mp::autocast {

// ---------------------------------------------------------------------------- slots

namespace {

/// TensorFlow's original batch norms use one type for all tensors.  The V2 versions, which its
/// optimizer substitutes, have separate statistics: all inputs and outputs except the first ones.
struct FirstBatchNorm {
  std::string_view op;
  int32_t data_inputs;
};
constexpr FirstBatchNorm kFirstBatchNorms[] = {{"FusedBatchNorm", 1}, {"FusedBatchNormGrad", 2}};

/// Returns nullptr for any other operation.
const FirstBatchNorm *first_batch_norm(const mp_autocast_graph_t &graph, uint32_t node) {
  if (graph.node_op == nullptr || graph.node_op[node] == nullptr) return nullptr;
  const auto *const found =
      std::find_if(std::begin(kFirstBatchNorms), std::end(kFirstBatchNorms),
                   [&](const FirstBatchNorm &norm) { return norm.op == graph.node_op[node]; });
  return found != std::end(kFirstBatchNorms) ? found : nullptr;
}

}  // namespace

Slots::Slots(const mp_autocast_graph_t &graph)
    : input_(graph.input_slot), tensor_(graph.tensor_slot) {
  for (uint32_t i = 0; i < graph.num_nodes; i++) {
    if (first_batch_norm(graph, i) == nullptr) continue;
    move_statistics(graph);
    return;
  }
}

void Slots::move_statistics(const mp_autocast_graph_t &graph) {
  const auto copy = [](const uint8_t *slots, size_t count) {
    return slots != nullptr ? std::vector<uint8_t>(slots, slots + count)
                            : std::vector<uint8_t>(count, 0);
  };
  moved_input_ = copy(input_, static_cast<size_t>(num_inputs(graph)));
  moved_tensor_ = copy(tensor_, graph.num_tensors);
  std::vector<bool> awaits_data_output(graph.num_nodes, false);
  for (uint32_t i = 0; i < graph.num_nodes; i++) {
    const FirstBatchNorm *const norm = first_batch_norm(graph, i);
    if (norm == nullptr) continue;
    awaits_data_output[i] = true;
    for (int32_t j = graph.input_offsets[i] + norm->data_inputs; j < graph.input_offsets[i + 1];
         j++)
      moved_input_[static_cast<size_t>(j)] = MP_AUTOCAST_SLOT_FP32;
  }
  for (uint32_t t = 0; t < graph.num_tensors; t++) {
    if (graph.tensor_producer[t] < 0) continue;
    const auto producer = static_cast<uint32_t>(graph.tensor_producer[t]);
    if (first_batch_norm(graph, producer) == nullptr) continue;
    if (!awaits_data_output[producer]) moved_tensor_[t] = MP_AUTOCAST_SLOT_FP32;
    awaits_data_output[producer] = false;
  }
  input_ = moved_input_.data();
  tensor_ = moved_tensor_.data();
}

// ---------------------------------------------------------------------------- vertices

Vertices::Vertices(const mp_autocast_graph_t &graph) : slots(graph) {
  list_vertices(graph);
  link(graph);
}

void Vertices::list_vertices(const mp_autocast_graph_t &graph) {
  using NodeSlot = std::pair<int32_t, uint8_t>;
  std::vector<NodeSlot> others;
  const auto for_each_port = [&](const auto &visit) {
    for_each_input(graph, [&](int32_t node, int32_t input, int32_t tensor) {
      if (is_fp32(graph, tensor)) visit(node, slots.of_input(input));
    });
    for (int32_t t = 0; t < static_cast<int32_t>(graph.num_tensors); t++)
      if (is_fp32(graph, t) && graph.tensor_producer[t] >= 0)
        visit(graph.tensor_producer[t], slots.of_tensor(t));
  };
  for_each_port([&](int32_t node, uint8_t slot) {
    if (slot != 0) others.emplace_back(node, slot);
  });
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());

  const size_t count = graph.num_nodes + others.size();
  first_.reserve(graph.num_nodes + size_t{1});
  node_.reserve(count);
  slot_.reserve(count);
  auto other = others.begin();
  for (int32_t i = 0; i < static_cast<int32_t>(graph.num_nodes); i++) {
    first_.push_back(static_cast<int32_t>(node_.size()));
    node_.push_back(i);
    slot_.push_back(0);
    for (; other != others.end() && other->first == i; ++other) {
      node_.push_back(i);
      slot_.push_back(other->second);
    }
  }
  first_.push_back(static_cast<int32_t>(node_.size()));

  is_eligible_.assign(count, false);
  for_each_port([&](int32_t node, uint8_t slot) {
    is_eligible_[static_cast<size_t>(find(node, slot))] = true;
  });
}

int32_t Vertices::find(int32_t node, uint8_t slot) const {
  int32_t vertex = of_node(node);
  while (this->slot(vertex) != slot) vertex++;
  return vertex;
}

int32_t Vertices::main_vertex(int32_t node) const {
  for (int32_t v = of_node(node); v < end_of_node(node); v++)
    if (is_eligible(v)) return v;
  return of_node(node);
}

// ---------------------------------------------------------------------------- edges

namespace {

/// @param for_each_edge  calls its argument as visit(from, to) for every edge, in a fixed order
template <class ForEachEdge>
Adjacency adjacency(int32_t count, const ForEachEdge &for_each_edge) {
  Adjacency a;
  a.first.assign(static_cast<size_t>(count) + 1, 0);
  for_each_edge([&](int32_t from, int32_t) { a.first[static_cast<size_t>(from) + 1]++; });
  std::partial_sum(a.first.begin(), a.first.end(), a.first.begin());
  a.other.resize(static_cast<size_t>(a.first.back()));
  std::vector<int32_t> next(a.first.begin(), a.first.end() - 1);
  for_each_edge([&](int32_t from, int32_t to) {
    a.other[static_cast<size_t>(next[static_cast<size_t>(from)]++)] = to;
  });
  return a;
}

}  // namespace

void Vertices::link(const mp_autocast_graph_t &graph) {
  const auto for_each_edge = [&](const auto &visit) {
    for_each_input(graph, [&](int32_t node, int32_t input, int32_t tensor) {
      const int32_t producer = graph.tensor_producer[tensor];
      if (producer < 0 || !is_fp32(graph, tensor)) return;
      visit(find(producer, slots.of_tensor(tensor)), find(node, slots.of_input(input)));
    });
    for (uint32_t e = 0; e < graph.num_hidden_edges; e++)
      visit(of_node(graph.hidden_src[e]), of_node(graph.hidden_dst[e]));
  };
  forward = adjacency(count(), for_each_edge);
  backward = adjacency(count(), [&](const auto &visit) {
    for_each_edge([&](int32_t from, int32_t to) { visit(to, from); });
  });
}

}  // namespace mp::autocast
