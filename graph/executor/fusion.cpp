#include "graph/executor/executor.h"

#include <algorithm>
#include <vector>

namespace mp::graph {

namespace {

class Fuser {
 public:
  explicit Fuser(Graph &graph) : graph_(graph), readers_(graph.tensors.size()) {
    for (Node &node : graph.nodes)
      for (const Input &input : node.inputs)
        if (input.tensor != kNone) readers_[static_cast<size_t>(input.tensor)].push_back(&node);
  }

  void fuse_all() {
    for (Node &node : graph_.nodes) {
      if (node.is_absorbed) continue;
      const Fusion fusion = node.operation->traits.fusion;
      if (fusion == Fusion::product) fuse_forward(node);
      if (fusion == Fusion::input_gradient) fuse_backward(node);
      if (fusion == Fusion::norm) fuse_relu(node);
      if (fusion == Fusion::norm_gradient) fuse_relu_grad(node);
      if (fusion == Fusion::row_norm) fuse_sum(node);
      if (fusion == Fusion::row_norm_gradient) fuse_sum_grad(node);
    }
  }

 private:
  /// Returns whether a tensor has no copy in another type and is not read externally.
  bool is_inner(const Tensor &t) const { return !t.is_output && t.copy_dtype == MP_DTYPE_NONE; }

  std::vector<Node *> &readers(int32_t tensor) { return readers_[static_cast<size_t>(tensor)]; }

  /// Returns the only reader of a tensor, if it reads the tensor as its first input and computes in
  /// its type; else nullptr.
  Node *sole_reader(int32_t tensor) {
    const Tensor &t = graph_.tensor(tensor);
    const std::vector<Node *> &all = readers(tensor);
    if (!is_inner(t) || all.size() != 1) return nullptr;
    return all[0]->input(0) == tensor && all[0]->dtype == t.dtype ? all[0] : nullptr;
  }

  /// Returns whether an operand is computed before `node`; a bias may be computed after it.
  bool is_ready(const Input &operand, const Node &node) const {
    return graph_.tensor(operand.tensor).producer < index_of(node);
  }

  /// Makes `node` write the output of `other`, and drops `other`.
  void absorb(Node &node, Node &other) {
    node.outputs[0] = other.outputs[0];
    graph_.tensor(node.outputs[0]).producer = index_of(node);
    drop(node, other);
  }

  void drop(Node &node, Node &other) {
    node.fused.names.push_back(other.name);
    other.is_absorbed = true;
    for (const Input &input : other.inputs)
      if (input.tensor != kNone) std::erase(readers(input.tensor), &other);
  }

  void fuse_forward(Node &node) {
    Node *next = sole_reader(node.outputs[0]);
    if (next != nullptr && next->operation->type == "BiasAdd" && !node.has_input(2) &&
        is_ready(next->inputs[1], node)) {
      node.fused.bias = next->inputs[1];
      absorb(node, *next);
    }
    fuse_activation(node);
  }

  void fuse_activation(Node &node) {
    const int32_t z = node.outputs[0];
    if (!is_inner(graph_.tensor(z))) return;
    for (Node *const reader : readers(z)) {
      const mp_activation_t activation = activation_of(*reader);
      if (activation == MP_ACT_NONE || reader->is_backward ||
          reader->dtype != graph_.tensor(z).dtype)
        continue;
      node.fused.activation = activation;
      absorb(node, *reader);
      if (!readers(z).empty()) node.fused.aux_out = z;  // such as the derivative
      return;
    }
  }

  void fuse_backward(Node &node) {
    Node *const next = sole_reader(node.outputs[0]);
    if (next != nullptr && next->is_backward && activation_of(*next) != MP_ACT_NONE &&
        graph_.dtype_read(next->inputs[1]) == next->dtype && is_ready(next->inputs[1], node)) {
      node.fused.activation = activation_of(*next);
      node.fused.aux = next->inputs[1];
      absorb(node, *next);
    }
    const std::vector<Node *> all = readers(node.outputs[0]);
    for (Node *const reader : all) {
      const size_t output = bias_gradient_of(*reader, node.outputs[0]);
      if (output == kAbsent) continue;
      node.fused.dbias = reader->outputs[output];
      graph_.tensor(node.fused.dbias).producer = index_of(node);
      reader->outputs[output] = kNone;
      if (std::ranges::all_of(reader->outputs, [](int32_t o) { return o == kNone; }))
        drop(node, *reader);
      else
        node.fused.names.push_back(reader->name + "'s bias");
      return;
    }
  }

  /// Returns the output of `reader` that sums the rows of `dz` in the type in which it is written.
  static size_t bias_gradient_of(const Node &reader, int32_t dz) {
    if (reader.operation->traits.fusion != Fusion::bias_gradient) return kAbsent;
    const size_t input = reader.inputs.size() - 1, output = reader.outputs.size() - 1;
    const bool reads_dz = reader.input(input) == dz && !reader.inputs[input].reads_copy;
    return reads_dz && reader.has_output(output) ? output : kAbsent;
  }

  void fuse_relu(Node &node) {
    Node *const next = sole_reader(node.outputs[0]);
    if (next == nullptr || activation_of(*next) != MP_ACT_RELU) return;
    node.fused.activation = MP_ACT_RELU;
    absorb(node, *next);
  }

  /// The kernel recomputes the mask from x.  The mask is correct only if a ReLU is fused into the
  /// forward normalization.
  void fuse_relu_grad(Node &node) {
    constexpr size_t kDy = 5;
    const int32_t dz = node.input(kDy);
    const Tensor &t = graph_.tensor(dz);
    if (t.producer == kNone || !is_inner(t) || readers(dz).size() != 1) return;
    Node &before = graph_.node(t.producer);
    if (before.is_absorbed || activation_of(before) != MP_ACT_DRELU || before.dtype != node.dtype ||
        graph_.node(node.forward).fused.activation != MP_ACT_RELU)
      return;
    node.inputs[kDy] = before.inputs[0];
    readers(before.input(0)).push_back(&node);
    node.fused.activation = MP_ACT_RELU;
    drop(node, before);
  }

  int32_t index_of(const Node &node) const {
    return static_cast<int32_t>(&node - graph_.nodes.data());
  }

  void add_reader(const Input &input, Node &node) { readers(input.tensor).push_back(&node); }

  /// Makes a norm add its input and a residual.  The sum is written at the time of the norm, so no
  /// other node may read it before.
  void fuse_sum(Node &norm) {
    const int32_t sum = norm.input(0);
    const Tensor &t = graph_.tensor(sum);
    if (t.producer == kNone || norm.inputs[0].reads_copy) return;
    Node &add = graph_.node(t.producer);
    if (add.operation->type != "Add" || add.is_absorbed || add.dtype != norm.dtype ||
        add.is_deferred != norm.is_deferred ||
        graph_.in(add, 0).extent != graph_.in(add, 1).extent ||
        std::ranges::any_of(readers(sum), [&](const Node *reader) { return reader < &norm; }))
      return;
    const bool can_write = can_narrow(norm);
    const bool is_dropped = is_dropout(add, 1) && is_read_once(add, 1);
    const size_t x = is_dropped || (can_write && can_narrow_term(add, 1)) ? 1 : 0;
    const bool is_narrow = can_write && can_narrow_term(add, x);
    const bool is_inner_term = is_read_once(add, x);
    norm.inputs[0] = add.inputs[x];
    norm.fused.aux = add.inputs[1 - x];
    norm.fused.aux_out = sum;
    graph_.tensor(sum).producer = index_of(norm);
    drop(norm, add);
    if (is_narrow) narrow(norm);
    std::erase(readers(sum), &norm);
    if (is_inner_term && is_dropout(norm, 0)) {
      Node &dropout = graph_.node(graph_.in(norm, 0).producer);
      norm.inputs[0] = dropout.inputs[0];
      norm.fused.dropout = index_of(dropout);
      drop(norm, dropout);
    }
    add_reader(norm.inputs[0], norm);
    add_reader(norm.fused.aux, norm);
  }

  /// Returns whether an input is a dropout in the type and phase of the node.
  bool is_dropout(const Node &node, size_t i) const {
    const Tensor &t = graph_.in(node, i);
    if (t.producer == kNone || !is_inner(t) || t.dtype != node.dtype) return false;
    const Node &producer = graph_.node(t.producer);
    return producer.operation->type == "Dropout" && producer.is_deferred == node.is_deferred;
  }
  /// Returns whether a node is the only reader of an input, and reads it once.
  bool is_read_once(const Node &node, size_t i) { return readers(node.input(i)).size() == 1; }

  // With a residual in fp32, a norm can read the other term and write its output in 16 bits.

  /// Returns whether a node reads a tensor or, with of_copy, its copy.
  bool is_read(int32_t tensor, bool of_copy) const {
    return std::ranges::any_of(graph_.nodes, [&](const Node &node) {
      bool reads = false;
      if (!node.is_absorbed)
        node.for_each_input([&](const Input &input) {
          reads |= input.tensor == tensor && input.reads_copy == of_copy;
        });
      return reads;
    });
  }
  bool can_narrow(const Node &norm) const {
    const Tensor &y = graph_.out(norm, 0);
    return norm.dtype == MP_FP32 && y.copy_dtype != MP_DTYPE_NONE && !y.is_output &&
           !is_read(norm.outputs[0], false);
  }
  /// Returns whether a term is, or can be, written in 16 bits.
  bool can_narrow_term(const Node &add, size_t i) {
    const Tensor &t = graph_.in(add, i);
    if (add.inputs[i].reads_copy) return t.role == Role::activation;
    if (t.producer == kNone || !is_inner(t) || !is_read_once(add, i)) return false;
    const Node &product = graph_.node(t.producer);
    return product.operation->traits.fusion == Fusion::product && product.dtype != MP_FP32 &&
           product.fused.aux_out == kNone;
  }
  /// Changes the input and output of a norm to 16 bits.
  void narrow(Node &norm) {
    Tensor &y = graph_.tensor(norm.outputs[0]);
    norm.dtype = y.dtype = y.copy_dtype;
    y.copy_dtype = MP_DTYPE_NONE;
    for (Node &node : graph_.nodes)
      for (Input &input : node.inputs)
        if (input.tensor == norm.outputs[0]) input.reads_copy = false;
    norm.inputs[0].reads_copy = false;
    graph_.tensor(norm.input(0)).dtype = norm.dtype;
    drop_unread_copy(norm.input(0));
  }
  void drop_unread_copy(int32_t tensor) {
    Tensor &t = graph_.tensor(tensor);
    if (t.role == Role::activation && !t.is_output && !is_read(tensor, true))
      t.copy_dtype = MP_DTYPE_NONE;
  }

  /// Makes the gradient of a norm add the other gradient of its input, and apply the dropout of
  /// that input.
  void fuse_sum_grad(Node &norm) {
    constexpr size_t kDy = 2;
    const int32_t dr = norm.outputs[0];
    const mp_dtype_t dtype = norm.dtype;
    if (norm.inputs[kDy].reads_copy && norm.dtype == MP_FP32) {
      norm.dtype = graph_.in(norm, kDy).dtype;
      norm.inputs[kDy].reads_copy = false;
      drop_unread_copy(norm.input(kDy));
    }
    if (is_inner(graph_.tensor(dr)) && readers(dr).size() == 1) {
      Node &next = *readers(dr)[0];
      const Input other = next.inputs[next.input(0) == dr ? 1 : 0];
      if (next.operation->type == "Add" && next.is_backward && next.dtype == dtype &&
          is_ready(other, norm)) {
        norm.fused.aux = other;
        absorb(norm, next);
        add_reader(other, norm);
      }
    }
    const int32_t sum = norm.outputs[0];
    const std::vector<Node *> all = readers(sum);
    for (Node *const reader : all) {
      if (reader->operation->type != "DropoutGrad" || reader->dtype != norm.dtype ||
          graph_.dtype_read(reader->inputs[0]) != norm.dtype)
        continue;
      norm.fused.dropout = index_of(*reader);
      norm.fused.aux_out = reader->outputs[0];
      graph_.tensor(reader->outputs[0]).producer = index_of(norm);
      drop(norm, *reader);
      drop_unread_copy(sum);
      return;
    }
    norm.fused.writes_copy = norm.dtype != dtype && graph_.tensor(sum).copy_dtype == norm.dtype;
  }

  Graph &graph_;
  std::vector<std::vector<Node *>> readers_;
};

}  // namespace

void fuse(Graph &graph) {
  Fuser(graph).fuse_all();
}

}  // namespace mp::graph
