// Vertices of a graph, to which a precision is assigned, and the edges that it propagates along.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/dtypes.h"
#include "mpcore.h"

namespace mp::autocast {

/// Slots of a validated graph; 0 if the caller passes none.
class Slots {
 public:
  explicit Slots(const mp_autocast_graph_t &graph);

  uint8_t of_input(int32_t input) const { return input_ != nullptr ? input_[input] : uint8_t{0}; }
  uint8_t of_tensor(int32_t tensor) const {
    return tensor_ != nullptr ? tensor_[tensor] : uint8_t{0};
  }

 private:
  void move_statistics(const mp_autocast_graph_t &graph);

  const uint8_t *input_;
  const uint8_t *tensor_;
  std::vector<uint8_t> moved_input_;  ///< empty if the caller's slots are used
  std::vector<uint8_t> moved_tensor_;
};

/// Adjacency list: the targets of each vertex's edges.
struct Adjacency {
  std::vector<int32_t> first;  ///< vertices + 1 entries
  std::vector<int32_t> other;

  std::span<const int32_t> of(int32_t vertex) const {
    const auto begin = static_cast<size_t>(first[static_cast<size_t>(vertex)]);
    const auto end = static_cast<size_t>(first[static_cast<size_t>(vertex) + 1]);
    return {other.data() + begin, end - begin};
  }
};

/// A vertex is a node with one of its slots.  The vertices of a node are consecutive: slot 0, then
/// the other slots on which an fp32 tensor is read or written, in ascending order.
class Vertices {
 public:
  explicit Vertices(const mp_autocast_graph_t &graph);

  int32_t count() const { return static_cast<int32_t>(slot_.size()); }
  int32_t of_node(int32_t node) const { return first_[static_cast<size_t>(node)]; }
  int32_t end_of_node(int32_t node) const { return first_[static_cast<size_t>(node) + 1]; }
  int32_t find(int32_t node, uint8_t slot) const;

  int32_t node(int32_t vertex) const { return node_[static_cast<size_t>(vertex)]; }
  uint8_t slot(int32_t vertex) const { return slot_[static_cast<size_t>(vertex)]; }
  /// Returns whether an fp32 tensor is read or written on the slot.
  bool is_eligible(int32_t vertex) const { return is_eligible_[static_cast<size_t>(vertex)]; }
  /// Returns the vertex that represents a node in reports.
  int32_t main_vertex(int32_t node) const;

  Slots slots;
  Adjacency forward, backward;

 private:
  void list_vertices(const mp_autocast_graph_t &graph);
  void link(const mp_autocast_graph_t &graph);

  std::vector<int32_t> first_;  ///< nodes + 1 entries
  std::vector<int32_t> node_;
  std::vector<uint8_t> slot_;
  std::vector<bool> is_eligible_;
};

/// Calls visit(node, input, tensor) for every input that is present.
template <class Visit>
void for_each_input(const mp_autocast_graph_t &graph, const Visit &visit) {
  for (uint32_t i = 0; i < graph.num_nodes; i++)
    for (int32_t j = graph.input_offsets[i]; j < graph.input_offsets[i + 1]; j++)
      if (graph.input_tensor[j] >= 0) visit(static_cast<int32_t>(i), j, graph.input_tensor[j]);
}

inline int32_t num_inputs(const mp_autocast_graph_t &graph) {
  return graph.num_nodes > 0 ? graph.input_offsets[graph.num_nodes] : 0;
}

/// Returns whether autocast accepts a type; all but the floating-point types stay unchanged.
inline bool is_element_dtype(uint8_t dtype) {
  return is_float(dtype) || dtype == MP_DTYPE_NONE || dtype == MP_INT32 || dtype == MP_INT64;
}

inline bool is_fp32(const mp_autocast_graph_t &graph, int32_t tensor) {
  return graph.tensor_dtype[tensor] == MP_FP32;
}

inline uint16_t flags_of(const mp_autocast_graph_t &graph, int32_t node) {
  return graph.node_flags != nullptr ? graph.node_flags[node] : uint16_t{0};
}

inline mp_tensor_role_t role_of(const mp_autocast_graph_t &graph, int32_t tensor) {
  return static_cast<mp_tensor_role_t>(graph.tensor_role != nullptr ? graph.tensor_role[tensor]
                                                                    : 0);
}

}  // namespace mp::autocast
