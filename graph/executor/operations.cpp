// Registry of operations, and functions that they share.
#include <algorithm>
#include <limits>

#include "graph/executor/operation.h"

namespace mp::graph {

namespace {

const Operation *look_up(std::string_view type) {
  for (const auto family :
       {product_operations, image_operations, pointwise_operations, sequence_operations,
        row_operations, layout_operations, recurrent_operations, loss_operations}) {
    const auto rows = family();
    const auto found = std::ranges::find(rows, type, &Operation::type);
    if (found != rows.end()) return &*found;
  }
  return nullptr;
}

const char *name_of(const Node &node, size_t input) {
  return node.operation->inputs[input].name;
}

}  // namespace

const Operation *find_operation(std::string_view type) {
  const Operation *const found = look_up(type);
  return found != nullptr && found->infer != nullptr ? found : nullptr;
}

const Operation &operation(std::string_view type) {
  const Operation *const found = look_up(type);
  MP_REQUIRE(found != nullptr, MP_ERROR_INTERNAL, "operation ", type, " is not registered");
  return *found;
}

Arity arity_of(std::span<const Port, kMaxPorts> ports) {
  Arity count = {0, 0};
  for (const Port &port : ports) {
    if (port.name == nullptr || (port.has(kKept) && !port.has(kOptional))) break;
    ++count.max;
    if (!port.has(kOptional)) count.min = count.max;
  }
  return count;
}

mp_activation_t activation_of(const Node &node) {
  const mp_activation_t activation = node.operation->traits.activation;
  const bool is_erf = !node.attributes.empty() && node.attributes[0].integer != 0;
  if (activation == MP_ACT_GELU && is_erf) return MP_ACT_GELU_ERF;
  if (activation == MP_ACT_DGELU && is_erf) return MP_ACT_DGELU_ERF;
  return activation;
}

int64_t depth_of(const Graph &graph, const Node &node) {
  switch (node.operation->traits.depth) {
    case Depth::unknown:
      return 0;
    case Depth::columns:
      return graph.in(node, 0).columns();
    case Depth::inner:
      return graph.in(node, 0).extent.rbegin()[node.attributes[0].integer != 0 ? 1 : 0];
    case Depth::rows:
      return graph.in(node, node.inputs.size() - 1).rows();
    case Depth::filter:
      return graph.in(node, 1).numel() / graph.in(node, 1).extent[0];
    case Depth::weights:
      return graph.in(node, 1).columns() + graph.in(node, 2).columns();
  }
  return 0;
}

void add_kept_outputs(Graph &graph, Node &node) {
  const Operation &op = *node.operation;
  const int32_t producer = graph.out(node, 0).producer;
  for (size_t i = 0; i < kMaxPorts; ++i) {
    const Port &port = op.outputs[i];
    // The kernel of a loss writes all of its outputs, even without a backward pass.
    if (!port.has(kKept) || node.has_output(i) || !(graph.has_backward() || op.traits.is_loss))
      continue;
    Tensor kept;
    kept.name = node.name + "/" + port.name;
    if (port.has(kBytes)) kept.dtype = MP_DTYPE_NONE;
    kept.producer = producer;
    if (node.outputs.size() <= i) node.outputs.resize(i + 1, kNone);
    node.outputs[i] = graph.add(std::move(kept));
    op.infer(graph, node);
  }
  if (op.traits.is_loss)
    for (const int32_t output : node.outputs) graph.tensor(output).is_output = true;
}

const Tensor &require_floats(const Graph &graph, const Node &node, size_t i, int rank) {
  const Tensor &t = graph.in(node, i);
  if (t.dtype == MP_DTYPE_NONE)
    fail_at(node, name_of(node, i), " = ", t.name, " must be a floating-point tensor");
  const auto has = static_cast<int>(t.extent.size());
  if (rank >= 0 ? has != rank : has == 0)
    fail_at(node, name_of(node, i), " = ", t.name, " has shape ", text_of(t.extent),
            ", but must have ",
            rank >= 0 ? std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions")
                      : "at least 1 dimension");
  return t;
}

const Tensor &require_integers(const Graph &graph, const Node &node, size_t i) {
  const Tensor &t = graph.in(node, i);
  if (t.dtype != MP_DTYPE_NONE || t.role != Role::input)
    fail_at(node, name_of(node, i), " = ", t.name, " must be an input of type MP_DTYPE_NONE");
  return t;
}

void require_narrow(const Node &node, const Tensor &tensor) {
  for (const int64_t extent : tensor.extent)
    if (extent > std::numeric_limits<int32_t>::max())
      fail_at(node, tensor.name, " has shape ", text_of(tensor.extent),
              ", but dimensions must be less than 2^31");
}

void require_extent(const Graph &graph, const Node &node, size_t i, const Extent &extent) {
  if (!node.has_input(i)) return;
  const Tensor &t = graph.in(node, i);
  if (t.extent != extent)
    fail_at(node, name_of(node, i), " = ", t.name, " has shape ", text_of(t.extent),
            ", but must have shape ", text_of(extent));
}

void require_vector(const Graph &graph, const Node &node, size_t i, int64_t columns) {
  if (!node.has_input(i)) return;
  require_floats(graph, node, i, 1);
  require_extent(graph, node, i, {columns});
}

void infer_same(Graph &graph, const Node &node) {
  set_extent(graph, node, 0, require_floats(graph, node, 0).extent);
}

}  // namespace mp::graph
