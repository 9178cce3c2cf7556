// Operation registry and shared functions of operations.
#include <algorithm>
#include <iterator>
#include <limits>

#include "base/lifetime.h"
#include "graph/executor/families.h"
#include "graph/executor/operation.h"

namespace mp::graph {

namespace {

std::vector<const Operation *> all_operations() {
  std::vector<const Operation *> all;
  for (const auto family : {product_operations, image_operations, pointwise_operations,
                            sequence_operations, recurrent_operations, loss_operations})
    std::ranges::copy(family(), std::back_inserter(all));
  return all;
}

const Operation *look_up(std::string_view type) {
  const auto &all = lazy_init([] { return all_operations(); });
  const auto found = std::ranges::find(all, type, [](const Operation *o) { return o->type; });
  return found != all.end() ? *found : nullptr;
}

}  // namespace

const Operation *find_operation(std::string_view type) {
  const Operation *const found = look_up(type);
  return dynamic_cast<const BackwardOperation *>(found) == nullptr ? found : nullptr;
}

const Operation &operation(std::string_view type) {
  const Operation *const found = look_up(type);
  MP_REQUIRE(found != nullptr, MP_ERROR_INTERNAL, "operation ", type, " is not registered");
  return *found;
}

void BackwardOperation::infer(Graph &graph, const Node &node) const {
  for (const int32_t output : node.outputs)
    if (output != kNone && graph.tensor(output).gradient_of != kNone)
      graph.tensor(output).extent = graph.tensor(graph.tensor(output).gradient_of).extent;
}

const Tensor &require_floats(const Graph &graph, const Node &node, size_t i, const char *name,
                             int rank) {
  const Tensor &t = graph.in(node, i);
  if (t.dtype == MP_DTYPE_NONE)
    fail_at(node, name, " = ", t.name, " must be a floating-point tensor");
  const auto has = static_cast<int>(t.extent.size());
  if (rank >= 0 ? has != rank : has == 0)
    fail_at(node, name, " = ", t.name, " has shape ", text_of(t.extent), ", but must have ",
            rank >= 0 ? std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions")
                      : "at least 1 dimension");
  return t;
}

const Tensor &require_integers(const Graph &graph, const Node &node, size_t i, const char *name) {
  const Tensor &t = graph.in(node, i);
  if (t.dtype != MP_DTYPE_NONE || t.role != Role::input)
    fail_at(node, name, " = ", t.name, " must be an input of type MP_DTYPE_NONE");
  return t;
}

void require_narrow(const Node &node, const Tensor &tensor) {
  for (const int64_t extent : tensor.extent)
    if (extent > std::numeric_limits<int32_t>::max())
      fail_at(node, tensor.name, " has shape ", text_of(tensor.extent),
              ", but dimensions must be less than 2^31");
}

void require_extent(const Graph &graph, const Node &node, size_t i, const char *name,
                    const Extent &extent) {
  if (!node.has_input(i)) return;
  const Tensor &t = graph.in(node, i);
  if (t.extent != extent)
    fail_at(node, name, " = ", t.name, " has shape ", text_of(t.extent), ", but must have shape ",
            text_of(extent));
}

void require_vector(const Graph &graph, const Node &node, size_t i, const char *name,
                    int64_t columns) {
  if (!node.has_input(i)) return;
  require_floats(graph, node, i, name, 1);
  require_extent(graph, node, i, name, {columns});
}

}  // namespace mp::graph
