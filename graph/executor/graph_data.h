// A graph as data: tensors, and the nodes that compute one from another.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "capi/check.h"
#include "mpcore.h"

namespace mp::graph {

class Operation;

/// No tensor, no node.
constexpr int32_t kNone = -1;

using Extent = std::vector<int64_t>;

enum class Role { activation, input, parameter, state };

struct Tensor {
  std::string name;
  Role role = Role::activation;
  /// As its producer writes it.  MP_FP32 until autocast has been asked.  MP_DTYPE_NONE: integers from outside, or
  /// bytes that one operation keeps for another.
  mp_dtype_t dtype = MP_FP32;
  Extent extent;  ///< for the batch that is set
  int32_t producer = kNone;
  int32_t gradient_of = kNone;            ///< it has the shape of this tensor
  bool is_output = false;                 ///< read from outside
  bool keeps_gradient = false;            ///< so is its gradient; that of a parameter is anyway
  mp_dtype_t copy_dtype = MP_DTYPE_NONE;  ///< of its other form, for readers of another type

  /// Number of elements; fails where 64 bits cannot count them.
  int64_t numel() const;
  /// Product of all dimensions but the last.
  int64_t rows() const;
  int64_t columns() const { return extent.empty() ? 1 : extent.back(); }
  /// A parameter's other form is kept by the optimizer.
  bool has_model_copy() const { return role == Role::parameter && copy_dtype != MP_DTYPE_NONE; }
  /// In memory, in one of its forms.  Not of integers from outside.
  size_t bytes(bool of_copy) const;
};

/// A tensor as a node reads it.
struct Input {
  int32_t tensor = kNone;
  bool reads_copy = false;  ///< the other form
};

/// What a product does on the way, besides what its operation says.
struct Fused {
  mp_activation_t activation = MP_ACT_NONE;
  Input bias;
  Input aux;                       ///< read by a derivative
  int32_t aux_out = kNone;         ///< what the activation is applied to, for its derivative
  int32_t dbias = kNone;           ///< written: the sum over the rows of the output
  std::vector<std::string> names;  ///< of the nodes that are computed here too
};

struct Node {
  const Operation *operation;
  std::string name;
  std::vector<Input> inputs;
  std::vector<int32_t> outputs;
  std::vector<double>
      attributes;  ///< as Operation::attributes() lists them; of Reshape, the extents
  bool is_backward = false;
  bool is_deferred = false;  ///< forward, but depends on the loss (schedule.h)
  int32_t number = 0;  ///< of mp_graph_node calls before; a backward node has its forward node's
  int32_t forward = kNone;     ///< of a backward node: the node that it belongs to
  mp_dtype_t dtype = MP_FP32;  ///< that it computes in
  Fused fused;
  bool is_absorbed = false;  ///< another node computes it

  bool has_input(size_t i) const { return i < inputs.size() && inputs[i].tensor != kNone; }
  bool has_output(size_t i) const { return i < outputs.size() && outputs[i] != kNone; }
  int32_t input(size_t i) const { return inputs[i].tensor; }
  /// Calls f with every tensor that the node reads, operands of fused nodes included.
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

/// What a graph consists of.
struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  ///< each behind those that it reads from
  int32_t loss = kNone;
  /// A tensor, and the input with its gradient.
  struct Seed {
    int32_t tensor, input;
  };
  std::vector<Seed> seeds;
  int64_t batch = 0;  ///< extent[0] of the inputs; 0: there is none

  bool has_backward() const { return loss != kNone || !seeds.empty(); }

  Tensor &tensor(int32_t id) { return tensors[static_cast<size_t>(id)]; }
  const Tensor &tensor(int32_t id) const { return tensors[static_cast<size_t>(id)]; }
  Node &node(int32_t id) { return nodes[static_cast<size_t>(id)]; }
  const Node &node(int32_t id) const { return nodes[static_cast<size_t>(id)]; }

  const Tensor &in(const Node &n, size_t i) const { return tensor(n.input(i)); }
  const Tensor &out(const Node &n, size_t i) const { return tensor(n.outputs[i]); }
  /// The type in which a node gets its i-th input.
  mp_dtype_t dtype_read(const Input &input) const {
    const Tensor &t = tensor(input.tensor);
    return input.reads_copy ? t.copy_dtype : t.dtype;
  }
  int32_t add(Tensor tensor) {
    tensors.push_back(std::move(tensor));
    return static_cast<int32_t>(tensors.size()) - 1;
  }
  /// Appends a node, as the producer of its outputs.
  int32_t add(Node node);
  /// Producer of the loss; nullptr without one.
  const Node *loss_node() const { return loss != kNone ? &node(tensor(loss).producer) : nullptr; }
};

/// a * b + c bytes; fails where 64 bits cannot count them.
size_t checked_bytes(size_t a, size_t b, size_t c = 0);

/// "[128 784]"
std::string text_of(const Extent &extent);

}  // namespace mp::graph
