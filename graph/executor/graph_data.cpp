#include "graph/executor/graph_data.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "graph/executor/operation.h"

namespace mp::graph {

namespace {

/// Returns the product of the first `rank` dimensions.
int64_t product(const Tensor &t, size_t rank) {
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i)
    MP_REQUIRE(multiply_add(count, t.extent[i], 0, &count), MP_ERROR_INVALID_ARGUMENT, t.name,
               " has shape ", text_of(t.extent), ": number of elements exceeds 2^63 - 1");
  return count;
}

}  // namespace

int64_t Tensor::numel() const {
  return product(*this, extent.size());
}

int64_t Tensor::rows() const {
  return extent.empty() ? 1 : product(*this, extent.size() - 1);
}

size_t Tensor::bytes(bool of_copy) const {
  const mp_dtype_t type = of_copy ? copy_dtype : dtype;
  const size_t element = type == MP_DTYPE_NONE ? 1 : mp_dtype_size(type);
  return checked_bytes(static_cast<size_t>(numel()), element);
}

size_t checked_bytes(size_t a, size_t b, size_t c) {
  constexpr size_t kMax = std::numeric_limits<int64_t>::max();
  int64_t bytes = 0;
  const bool fits = a <= kMax && b <= kMax && c <= kMax &&
                    multiply_add(static_cast<int64_t>(a), static_cast<int64_t>(b),
                                 static_cast<int64_t>(c), &bytes);
  MP_REQUIRE(fits, MP_ERROR_INVALID_ARGUMENT,
             "graph: size of all tensors in bytes exceeds 2^63 - 1");
  return static_cast<size_t>(bytes);
}

int32_t Graph::add(Node node) {
  const auto id = static_cast<int32_t>(nodes.size());
  if (!node.is_backward) node.number = id;
  for (const int32_t output : node.outputs)
    if (output != kNone) tensor(output).producer = id;
  nodes.push_back(std::move(node));
  return id;
}

std::string text_of(const Extent &extent) {
  std::string text = "[";
  for (const int64_t e : extent) text += (text.size() > 1 ? " " : "") + std::to_string(e);
  return text + "]";
}

// ---------------------------------------------------------------------------- phases

Phase phase_of(const Graph &graph, const Node &node) {
  if (node.is_backward) return Phase::backward;
  if (node.is_deferred) return Phase::after_loss;
  return &node == graph.loss_node() ? Phase::loss : Phase::forward;
}

bool computes_loss(const Graph &graph, const Node &node) {
  return node.is_backward && graph.loss != kNone &&
         node.forward == graph.tensor(graph.loss).producer;
}

namespace {

/// Reorders the nodes.
/// @param order  permutation of node indices
void reorder(Graph &graph, const std::vector<int32_t> &order) {
  std::vector<int32_t> position(order.size());
  std::vector<Node> nodes;
  for (const int32_t id : order) {
    position[static_cast<size_t>(id)] = static_cast<int32_t>(nodes.size());
    nodes.push_back(std::move(graph.node(id)));
  }
  const auto move = [&](int32_t &id) {
    if (id != kNone) id = position[static_cast<size_t>(id)];
  };
  for (Node &node : nodes) move(node.forward);
  for (Tensor &t : graph.tensors) move(t.producer);
  graph.nodes = std::move(nodes);
}

}  // namespace

void defer_readers_of_loss(Graph &graph) {
  if (graph.loss == kNone) return;
  std::vector<bool> waits(graph.tensors.size());
  std::vector<int32_t> order, deferred;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node &node = graph.nodes[i];
    bool waits_for_loss = false;
    node.for_each_input(
        [&](const Input &input) { waits_for_loss |= waits[static_cast<size_t>(input.tensor)]; });
    node.is_deferred = waits_for_loss && !node.is_backward;
    if (&node == graph.loss_node() || node.is_deferred)
      node.for_each_output([&](int32_t output) { waits[static_cast<size_t>(output)] = true; });
    (node.is_deferred ? deferred : order).push_back(static_cast<int32_t>(i));
  }
  const auto at =
      std::ranges::find_if(order, [&](int32_t id) { return computes_loss(graph, graph.node(id)); });
  MP_REQUIRE(at != order.end(), MP_ERROR_INVALID_ARGUMENT, "loss = ", graph.tensor(graph.loss).name,
             " must depend on a parameter");
  if (deferred.empty()) return;
  order.insert(std::next(at), deferred.begin(), deferred.end());
  reorder(graph, order);
}

namespace {

/// Fails if a node reads a tensor before it is written.
/// @param passes  phases of each pass over the nodes
void require_order_of(const Graph &graph,
                      std::initializer_list<std::initializer_list<Phase>> passes) {
  std::vector<bool> is_written;
  for (const Tensor &t : graph.tensors) is_written.push_back(t.role != Role::activation);
  const auto write = [&](int32_t tensor) { is_written[static_cast<size_t>(tensor)] = true; };
  for (const auto &phases : passes) {
    for (const Node &node : graph.nodes) {
      if (node.is_absorbed || std::ranges::find(phases, phase_of(graph, node)) == phases.end())
        continue;
      node.for_each_input([&](const Input &input) {
        MP_REQUIRE(is_written[static_cast<size_t>(input.tensor)], MP_ERROR_INTERNAL, "node ",
                   node.name, " reads ", graph.tensor(input.tensor).name, " before it is computed");
      });
      node.for_each_output(write);
      if (computes_loss(graph, node)) graph.loss_node()->for_each_output(write);
    }
  }
}

}  // namespace

void require_order(const Graph &graph) {
  require_order_of(graph, {{Phase::forward, Phase::loss, Phase::after_loss}});
  if (graph.has_backward())
    require_order_of(graph, {{Phase::forward}, {Phase::after_loss, Phase::backward}});
}

}  // namespace mp::graph
