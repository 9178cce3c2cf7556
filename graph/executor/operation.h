// Interface of operations: inputs and attributes, shape inference, gradient, and emitted calls.
//
// Operations are stateless; nodes hold all state.  operations.cpp lists all operations, with one
// file per family (families.h).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "graph/executor/graph_data.h"

namespace mp::graph {

class Gradients;
class Emitter;

struct Attribute {
  std::string_view name;
  mp_attribute_kind_t kind;
  int64_t initial_int, min_int, max_int;  ///< INT, and limits of the elements of INTS
  double initial, min, max;               ///< FLOAT
};

constexpr Attribute integer(std::string_view name, int64_t initial, int64_t min, int64_t max) {
  return {name, MP_ATTRIBUTE_KIND_INT, initial, min, max, 0, 0, 0};
}
constexpr Attribute real(std::string_view name, double initial, double min, double max) {
  return {name, MP_ATTRIBUTE_KIND_FLOAT, 0, 0, 0, initial, min, max};
}
/// List of at most MP_GRAPH_MAX_RANK elements, empty by default.
constexpr Attribute integers(std::string_view name, int64_t min, int64_t max) {
  return {name, MP_ATTRIBUTE_KIND_INTS, 0, min, max, 0, 0, 0};
}

/// Allowed number of inputs or outputs.
struct Count {
  size_t least, most;
};

class Operation {
 public:
  Operation(std::string_view type, Count inputs, Count outputs)
      : type(type), inputs(inputs), outputs(outputs) {}
  virtual ~Operation() = default;
  Operation(const Operation &) = delete;
  Operation &operator=(const Operation &) = delete;

  const std::string_view type;
  const Count inputs, outputs;

  virtual std::span<const Attribute> attributes() const { return {}; }

  /// Sets the extents of the outputs; fails if the inputs do not match.  Called when the node is
  /// added, and for every other batch size.
  virtual void infer(Graph &graph, const Node &node) const = 0;

  /// Adds outputs that forward keeps for backward.  Called before differentiate().
  virtual void keep(Graph &, Node &) const {}
  /// Appends nodes that compute the gradients of the inputs from those of the outputs.
  virtual void differentiate(Gradients &, const Node &) const {}

  /// Autocast: bits of mp_node_flags_t.
  virtual uint16_t flags() const { return 0; }
  /// Autocast: slots of the i-th input or output, 0 or MP_AUTOCAST_SLOT_FP32.
  virtual uint8_t input_slot(size_t) const { return 0; }
  virtual uint8_t output_slot(size_t) const { return 0; }
  /// Autocast: number of terms of a sum, or 0.
  virtual int64_t depth(const Graph &, const Node &) const { return 0; }

  /// Sets the extents of tensors from keep(), which depend on types.
  virtual void settle(Graph &, const Node &, mp_context_t) const {}
  /// Emits the calls of a node.
  virtual void emit(Emitter &emitter, const Node &node) const = 0;

  /// Returns whether the i-th input may be unbound when the node runs.
  virtual bool may_be_unbound(size_t) const { return false; }
  /// Returns whether the node computes nothing while its i-th input is unbound.
  virtual bool idles_without(size_t) const { return false; }
  /// Returns whether the i-th input may be absent.
  virtual bool may_be_absent(size_t i) const { return i >= inputs.least; }
  /// Returns whether the first output is a loss, which backward computes with its gradient.
  virtual bool is_loss() const { return false; }
  /// Returns the activation that a preceding product can compute in its epilogue: a function of the
  /// input, or the first input times a derivative at the second.
  virtual mp_activation_t activation(const Node &) const { return MP_ACT_NONE; }
  /// Returns whether the output is the input with another shape.
  virtual bool is_view() const { return false; }
  /// Returns whether the first output has the type in which the node reads its first input.
  virtual bool writes_as_it_reads() const { return false; }
};

/// Index of an input or output that an operation does not have.
constexpr size_t kAbsent = ~size_t{0};

/// Largest 32-bit integer attribute.
constexpr int64_t kMaxInt32 = 2147483647;

/// Returns nullptr for unknown operations and for those of the backward pass.
const Operation *find_operation(std::string_view type);
/// Returns any operation, including those of the backward pass.
const Operation &operation(std::string_view type);

/// Fails with a message about a node.
template <class... Parts>
[[noreturn]] void fail_at(const Node &node, const Parts &...parts) {
  fail(MP_ERROR_INVALID_ARGUMENT, "node ", node.name, ": ", node.operation->type, ": ", parts...);
}

/// Returns input i, which must be floating-point with that rank; rank < 0: any rank except 0.
const Tensor &require_floats(const Graph &graph, const Node &node, size_t i, const char *name,
                             int rank = -1);
/// Returns input i, which must be an external integer tensor.
const Tensor &require_integers(const Graph &graph, const Node &node, size_t i, const char *name);
/// Requires input i, if present, to be a vector of `columns` floats.
void require_vector(const Graph &graph, const Node &node, size_t i, const char *name,
                    int64_t columns);
/// Requires input i, if present, to have this shape.
void require_extent(const Graph &graph, const Node &node, size_t i, const char *name,
                    const Extent &extent);

/// Requires all extents to fit in 32 bits, for calls with 32-bit sizes.
void require_narrow(const Node &node, const Tensor &tensor);

inline int32_t narrow(int64_t value) {
  return static_cast<int32_t>(value);
}

inline void set_extent(Graph &graph, const Node &node, size_t output, const Extent &extent) {
  if (node.has_output(output)) graph.tensor(node.outputs[output]).extent = extent;
}

/// Operation of the backward pass.  Its outputs are gradients and have the shapes of their tensors.
class BackwardOperation : public Operation {
 public:
  /// Input and output counts are not checked: only differentiate() adds these nodes.
  explicit BackwardOperation(std::string_view type) : Operation(type, {}, {}) {}
  void infer(Graph &graph, const Node &node) const override;
};

}  // namespace mp::graph
