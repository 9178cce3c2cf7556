// Graph data: tensors, and the nodes that compute them.
#pragma once

#include <string>
#include <vector>

#include "capi/check.h"

namespace mp::graph {

struct Operation;

/// Index for no tensor or no node.
constexpr int32_t kNone = -1;

using Extent = std::vector<int64_t>;

enum class Role { activation, input, parameter, state };

struct Tensor {
  std::string name;
  Role role = Role::activation;
  /// Type that the producer writes; MP_FP32 before autocast.  MP_DTYPE_NONE for external integers,
  /// or for bytes that one operation keeps for another.
  mp_dtype_t dtype = MP_FP32;
  Extent extent;  ///< for the current batch
  int32_t producer = kNone;
  int32_t gradient_of = kNone;            ///< tensor that has the same shape
  bool is_output = false;                 ///< read externally
  bool keeps_gradient = false;            ///< gradient is read externally; always so for parameters
  mp_dtype_t copy_dtype = MP_DTYPE_NONE;  ///< type of the copy for readers of another type

  /// Returns the number of elements; fails if it does not fit in 64 bits.
  int64_t numel() const;
  /// Returns the product of all dimensions but the last.
  int64_t rows() const;
  int64_t columns() const { return extent.empty() ? 1 : extent.back(); }
  /// Returns whether the optimizer writes a 16-bit copy of this parameter.
  bool has_model_copy() const { return role == Role::parameter && copy_dtype != MP_DTYPE_NONE; }
  /// Returns the size in memory of the tensor or its copy.  Not for external integers.
  size_t bytes(bool of_copy) const;
};

/// Tensor that a node reads.
struct Input {
  int32_t tensor = kNone;
  bool reads_copy = false;  ///< reads the copy in the other type
};

/// Value of an attribute; its kind selects the member.
struct Value {
  int64_t integer = 0;
  double real = 0.0;
  std::vector<int64_t> integers;
};

/// Operations fused into a product or a norm.
struct Fused {
  mp_activation_t activation = MP_ACT_NONE;
  Input bias;
  /// Product: operand of an activation derivative.  Norm: residual, or the other term of the
  /// gradient.
  Input aux;
  /// Product: input of the activation, written for its derivative.  Norm: sum with the residual, or
  /// gradient of the input of the dropout.
  int32_t aux_out = kNone;
  int32_t dbias = kNone;           ///< column sums of the output
  bool writes_copy = false;        ///< norm: also writes the copy of the first output
  int32_t dropout = kNone;         ///< node of an absorbed dropout
  std::vector<std::string> names;  ///< names of the fused nodes
};

struct Node {
  const Operation *operation;
  std::string name;
  std::vector<Input> inputs;
  std::vector<int32_t> outputs;
  std::vector<Value> attributes;  ///< in the order of Operation::attributes
  bool is_backward = false;
  bool is_deferred = false;  ///< forward node that depends on the loss (Phase)
  int32_t number = 0;  ///< earlier mp_graph_add_node calls; backward: those of its forward node
  int32_t forward = kNone;     ///< backward: the corresponding forward node
  mp_dtype_t dtype = MP_FP32;  ///< type of the computation
  Fused fused;
  bool is_absorbed = false;  ///< computed by another node

  bool has_input(size_t i) const { return input(i) != kNone; }
  bool has_output(size_t i) const { return output(i) != kNone; }
  /// Returns kNone for an input or output that the node does not have.
  int32_t input(size_t i) const { return i < inputs.size() ? inputs[i].tensor : kNone; }
  int32_t output(size_t i) const { return i < outputs.size() ? outputs[i] : kNone; }
  /// Calls f with every tensor that the node reads, including operands of fused nodes.
  template <class F>
  void for_each_input(const F &f) const {
    for (const Input &input : inputs)
      if (input.tensor != kNone) f(input);
    for (const Input &input : {fused.bias, fused.aux})
      if (input.tensor != kNone) f(input);
  }
  /// Calls f with every tensor that the node writes.
  template <class F>
  void for_each_output(const F &f) const {
    for (const int32_t output : outputs)
      if (output != kNone) f(output);
    for (const int32_t output : {fused.aux_out, fused.dbias})
      if (output != kNone) f(output);
  }
};

/// Tensors and nodes of a graph, its loss and its seeds.
struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  ///< in topological order
  int32_t loss = kNone;
  /// Tensor, and the input that contains its gradient.
  struct Seed {
    int32_t tensor, input;
  };
  std::vector<Seed> seeds;
  int64_t batch = 0;  ///< extent[0] of the inputs, or 0 without inputs

  bool has_backward() const { return loss != kNone || !seeds.empty(); }

  Tensor &tensor(int32_t id) { return tensors[static_cast<size_t>(id)]; }
  const Tensor &tensor(int32_t id) const { return tensors[static_cast<size_t>(id)]; }
  Node &node(int32_t id) { return nodes[static_cast<size_t>(id)]; }
  const Node &node(int32_t id) const { return nodes[static_cast<size_t>(id)]; }

  const Tensor &in(const Node &n, size_t i) const { return tensor(n.input(i)); }
  const Tensor &out(const Node &n, size_t i) const { return tensor(n.outputs[i]); }
  /// Returns the type in which a node reads an input.
  mp_dtype_t dtype_read(const Input &input) const {
    const Tensor &t = tensor(input.tensor);
    return input.reads_copy ? t.copy_dtype : t.dtype;
  }
  int32_t add(Tensor tensor) {
    tensors.push_back(std::move(tensor));
    return static_cast<int32_t>(tensors.size()) - 1;
  }
  /// Appends a node and registers it as the producer of its outputs.
  int32_t add(Node node);
  /// Returns the producer of the loss, or nullptr without a loss.
  const Node *loss_node() const { return loss != kNone ? &node(tensor(loss).producer) : nullptr; }
};

/// Phase of a node.
///
/// One list of nodes serves both modes.  In training, the loss is computed together with its
/// gradient.  A node that depends on the loss therefore follows that backward node, in both modes.
enum class Phase {
  forward,
  loss,        ///< inference only: backward computes the loss with its gradient
  after_loss,  ///< part of forward in inference, of backward in training
  backward
};
constexpr size_t kPhases = 4;

Phase phase_of(const Graph &graph, const Node &node);

/// Returns whether a node computes the gradient of the loss and, in training, the loss itself.
bool computes_loss(const Graph &graph, const Node &node);

/// Marks the nodes that depend on the loss, and moves them after the node of its gradient.
void defer_readers_of_loss(Graph &graph);

/// Fails with MP_ERROR_INTERNAL if a node reads a tensor before it is written in the same mode.
void require_order(const Graph &graph);

/// Returns a * b + c bytes; fails if they do not fit in 64 bits.
size_t checked_bytes(size_t a, size_t b, size_t c = 0);

/// Returns e.g. "[128 784]".
std::string text_of(const Extent &extent);

}  // namespace mp::graph
