// Validation of mp_autocast_graph_t: required arrays are present, and all indices are in range.
#include <cstdint>
#include <limits>

#include "capi/check.h"
#include "graph/autocast_object.h"

namespace mp {

namespace {

constexpr int64_t kMax = std::numeric_limits<int32_t>::max();

/// Fails with a message that names an element of an array of the graph.
template <class... Rest>
[[noreturn]] void fail_at(const char *array, int64_t index, int64_t value, const Rest &...rest) {
  fail(MP_ERROR_INVALID_ARGUMENT, "graph->", array, "[", index, "] = ", value, rest...);
}

template <class T>
void require_array(const T *array, const char *name, int64_t count) {
  MP_REQUIRE(array != nullptr || count == 0, MP_ERROR_INVALID_ARGUMENT, "graph->", name,
             " = NULL, but ", count, " elements are required");
}

/// @param least  0, or -1 if -1 means none
void require_indices(const int32_t *array, const char *name, int64_t count, int64_t least,
                     int64_t end, const char *of_what) {
  require_array(array, name, count);
  for (int64_t i = 0; i < count; i++)
    if (array[i] < least || array[i] >= end)
      fail_at(name, i, array[i], " is outside [", least, ", ", of_what, " = ", end, ")");
}

/// Checks the elements of an optional array.
template <class T>
void require_at_most(const T *array, const char *name, int64_t count, int64_t most,
                     const char *otherwise) {
  if (array == nullptr) return;
  for (int64_t i = 0; i < count; i++)
    if (array[i] > most) fail_at(name, i, array[i], otherwise);
}

/// Checks count + 1 offsets, which begin with 0 and do not decrease.  Returns the last one.
int64_t require_ranges(const int32_t *first, const char *name, int64_t count) {
  if (count == 0) return 0;
  require_array(first, name, count + 1);
  if (first[0] != 0) fail_at(name, 0, first[0], " must be 0");
  for (int64_t i = 1; i <= count; i++)
    if (first[i] < first[i - 1])
      fail_at(name, i, first[i], " is smaller than the previous element, ", first[i - 1]);
  return first[count];
}

void require_counts(const mp_autocast_graph_t &g) {
  const auto require_count = [](uint32_t count, const char *name) {
    MP_REQUIRE(count <= kMax, MP_ERROR_INVALID_ARGUMENT, "graph->", name, " = ", count, " exceeds ",
               kMax);
  };
  require_count(g.num_nodes, "num_nodes");
  require_count(g.num_tensors, "num_tensors");
  require_count(g.num_hidden_edges, "num_hidden_edges");
  require_count(g.num_clusters, "num_clusters");
  require_zero(g.reserved0, "graph->reserved0");
}

void require_classes(const mp_autocast_graph_t &g) {
  if (g.num_nodes > 0 && g.node_class == nullptr) require_array(g.node_op, "node_op", g.num_nodes);
  require_at_most(g.node_class, "node_class", g.num_nodes, 1 + MP_OP_CLASS_PROMOTE,
                  " must be 0 or 1 + mp_op_class_t");
  for (int64_t i = 0; i < g.num_nodes; i++) {
    const bool has_class = g.node_class != nullptr && g.node_class[i] != 0;
    const bool has_op = g.node_op != nullptr && g.node_op[i] != nullptr;
    MP_REQUIRE(has_class || has_op, MP_ERROR_INVALID_ARGUMENT, "graph->node_op[", i,
               "] = NULL, but graph->node_class does not set the class of the node");
  }
}

void require_nodes(const mp_autocast_graph_t &g) {
  constexpr uint32_t kFlags = 2 * MP_NODE_FLAG_WRITES_EITHER - 1;
  require_classes(g);
  require_at_most(g.node_flags, "node_flags", g.num_nodes, kFlags, " has unknown bits");
  if (g.node_depth == nullptr) return;
  for (int64_t i = 0; i < g.num_nodes; i++)
    if (g.node_depth[i] < 0) fail_at("node_depth", i, g.node_depth[i], " is negative");
}

void require_tensors(const mp_autocast_graph_t &g) {
  require_indices(g.tensor_producer, "tensor_producer", g.num_tensors, -1, g.num_nodes,
                  "num_nodes");
  require_array(g.tensor_dtype, "tensor_dtype", g.num_tensors);
  for (int64_t i = 0; i < g.num_tensors; i++)
    if (!autocast::is_element_dtype(g.tensor_dtype[i]))
      fail_at("tensor_dtype", i, g.tensor_dtype[i], " must be the mp_dtype_t of an element");
  require_at_most(g.tensor_role, "tensor_role", g.num_tensors, MP_TENSOR_ROLE_OUTPUT,
                  " must be an mp_tensor_role_t");
}

bool is_16_bits(const mp_autocast_graph_t &g, int64_t tensor) {
  return g.tensor_dtype[tensor] == MP_FP16 || g.tensor_dtype[tensor] == MP_BF16;
}

/// Checks that MP_AUTOCAST_SLOT_FP32 is not used for 16-bit tensors.
void require_slots(const mp_autocast_graph_t &g, int64_t num_inputs) {
  const auto require_wide = [&](const char *name, int64_t i, uint8_t slot, int64_t tensor) {
    if (slot == MP_AUTOCAST_SLOT_FP32 && is_16_bits(g, tensor))
      fail_at(name, i, slot, " (MP_AUTOCAST_SLOT_FP32) requires an fp32 tensor, but tensor ",
              tensor, " is ", mp_dtype_name(static_cast<mp_dtype_t>(g.tensor_dtype[tensor])));
  };
  for (int64_t t = 0; g.tensor_slot != nullptr && t < g.num_tensors; t++)
    require_wide("tensor_slot", t, g.tensor_slot[t], t);
  for (int64_t j = 0; g.input_slot != nullptr && j < num_inputs; j++) {
    const int32_t t = g.input_tensor[j];
    if (t >= 0) require_wide("input_slot", j, g.input_slot[j], t);
  }
}

}  // namespace

mp_autocast_graph_t read_autocast_graph(const mp_autocast_graph_t *user) {
  const mp_autocast_graph_t g = read_struct(user, "graph");
  require_counts(g);
  require_nodes(g);
  const int64_t num_inputs = require_ranges(g.input_offsets, "input_offsets", g.num_nodes);
  require_indices(g.input_tensor, "input_tensor", num_inputs, -1, g.num_tensors, "num_tensors");
  require_tensors(g);
  require_slots(g, num_inputs);
  require_indices(g.hidden_src, "hidden_src", g.num_hidden_edges, 0, g.num_nodes, "num_nodes");
  require_indices(g.hidden_dst, "hidden_dst", g.num_hidden_edges, 0, g.num_nodes, "num_nodes");
  const int64_t members = require_ranges(g.member_offsets, "member_offsets", g.num_clusters);
  require_indices(g.member, "member", members, 0, g.num_nodes, "num_nodes");
  require_at_most(g.cluster_kind, "cluster_kind", g.num_clusters, 1, " must be 0 or 1");

  // Totals must fit in 32 bits: edges, then vertices.
  MP_REQUIRE(num_inputs + g.num_hidden_edges <= kMax, MP_ERROR_INVALID_ARGUMENT,
             "graph->num_hidden_edges = ", g.num_hidden_edges, " plus ", num_inputs,
             " inputs exceeds ", kMax);
  MP_REQUIRE(num_inputs + g.num_nodes + g.num_tensors <= kMax, MP_ERROR_INVALID_ARGUMENT,
             "graph->num_nodes = ", g.num_nodes, " plus graph->num_tensors = ", g.num_tensors,
             " plus ", num_inputs, " inputs exceeds ", kMax);
  return g;
}

}  // namespace mp
