// What the executor knows of an operation: its inputs and attributes, its shapes, its gradient, its calls.
//
// An operation has no state; nodes have.  All of them are listed in operations.cpp, one file per family
// beside it.
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
  double initial;
  double least, most;
  bool is_whole;
};

/// How many inputs or outputs there are.
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

  /// Sets the extents of the outputs, and fails where the inputs do not fit: once when the node is made, and again
  /// for another batch.
  virtual void infer(Graph &graph, const Node &node) const = 0;

  /// Adds tensors that the forward pass leaves for the backward pass as further outputs, before differentiate().
  virtual void keep(Graph &, Node &) const {}
  /// Appends the nodes that compute the gradients of the inputs from those of the outputs.
  virtual void differentiate(Gradients &, const Node &) const {}

  /// Autocast: bits of mp_node_flags_t.
  virtual uint16_t flags() const { return 0; }
  /// Autocast: slots of the i-th input and output; 0 or MP_SLOT_FP32.
  virtual uint8_t input_slot(size_t) const { return 0; }
  virtual uint8_t output_slot(size_t) const { return 0; }
  /// Autocast: terms of a sum; 0: none.
  virtual int64_t depth(const Graph &, const Node &) const { return 0; }

  /// Sizes what keep() has left, once types are known.
  virtual void settle(Graph &, const Node &, mp_context_t) const {}
  /// Appends the calls that a node makes.
  virtual void emit(Emitter &emitter, const Node &node) const = 0;

  /// Whether the i-th input may be nowhere when the node runs.
  virtual bool may_be_unbound(size_t) const { return false; }
  /// True if the node computes nothing while such an input is nowhere.
  virtual bool idles_without(size_t) const { return false; }
  /// Returns whether the i-th input may be absent.
  virtual bool may_be_absent(size_t i) const { return i >= inputs.least; }
  /// True if the first output is a loss, which the backward pass computes with its gradient.
  virtual bool is_loss() const { return false; }
  /// The function that a product before it can compute in its epilogue: an activation of its input, or of its first
  /// input times a derivative at the second.
  virtual mp_activation_t activation(const Node &) const { return MP_ACT_NONE; }
  /// Its output is its input, under another shape.
  virtual bool is_view() const { return false; }
  /// Its attributes are extents, as many as it is given.
  virtual bool has_extents() const { return false; }
  /// Its first output has the type in which it reads its first input.
  virtual bool writes_as_it_reads() const { return false; }

 protected:
  /// The value of an attribute of a node of this operation.
  double attribute(const Node &node, std::string_view name) const;
  int32_t whole(const Node &node, std::string_view name) const {
    return static_cast<int32_t>(attribute(node, name));
  }
};

/// An input or an output that an operation does not have.
constexpr size_t kAbsent = ~size_t{0};

/// Whole numbers of 32 bits.
constexpr double kMaxWhole = 2147483647;

/// nullptr where no user can make a node of it.
const Operation *find_operation(std::string_view type);
/// Of the backward pass too.
const Operation &operation(std::string_view type);

/// Ends the call with a sentence about a node.
template <class... Parts>
[[noreturn]] void fail_at(const Node &node, const Parts &...parts) {
  fail(MP_ERROR_INVALID_ARGUMENT, "node ", node.name, ": ", node.operation->type, ": ", parts...);
}

/// Input i as a tensor of floats with that many dimensions; rank < 0: any number but 0.
const Tensor &require_floats(const Graph &graph, const Node &node, size_t i, const char *name,
                             int rank = -1);
/// Input i as a tensor of integers from outside.
const Tensor &require_integers(const Graph &graph, const Node &node, size_t i, const char *name);
/// Input i, where it is there, as a vector of `columns` floats.
void require_vector(const Graph &graph, const Node &node, size_t i, const char *name,
                    int64_t columns);
/// Input i has this extent.
void require_extent(const Graph &graph, const Node &node, size_t i, const char *name,
                    const Extent &extent);

/// Every extent fits into 32 bits, as the calls of some families want it.
void require_narrow(const Node &node, const Tensor &tensor);

inline int32_t narrow(int64_t value) {
  return static_cast<int32_t>(value);
}

inline void set_extent(Graph &graph, const Node &node, size_t output, const Extent &extent) {
  if (node.has_output(output)) graph.tensor(node.outputs[output]).extent = extent;
}

/// A node of the backward pass, whose outputs are gradients and have the shapes of what they belong to.
class BackwardOperation : public Operation {
 public:
  /// No user makes a node of it, so nobody asks how many inputs it has.
  explicit BackwardOperation(std::string_view type) : Operation(type, {}, {}) {}
  void infer(Graph &graph, const Node &node) const override;
};

}  // namespace mp::graph
