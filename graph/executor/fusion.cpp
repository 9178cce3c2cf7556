#include "graph/executor/executor.h"

#include <algorithm>
#include <vector>

#include "graph/executor/operation.h"

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
    return graph_.tensor(operand.tensor).producer < &node - graph_.nodes.data();
  }

  /// Makes `node` write the output of `other`, and drops `other`.
  void absorb(Node &node, Node &other) {
    node.outputs[0] = other.outputs[0];
    graph_.tensor(node.outputs[0]).producer = static_cast<int32_t>(&node - graph_.nodes.data());
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
      if (!readers(z).empty()) node.fused.aux_out = z;  // for the derivative and any other reader
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
      graph_.tensor(node.fused.dbias).producer = static_cast<int32_t>(&node - graph_.nodes.data());
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

  Graph &graph_;
  std::vector<std::vector<Node *>> readers_;
};

}  // namespace

void fuse(Graph &graph) {
  Fuser(graph).fuse_all();
}

}  // namespace mp::graph
