#include "graph/executor/executor.h"

#include <algorithm>
#include <span>
#include <vector>

#include "graph/autocast_object.h"

namespace mp::graph {

namespace {

/// AutocastArrays of mp_autocast_graph_t for a graph.
class AutocastArrays {
 public:
  explicit AutocastArrays(const Graph &graph) {
    for (const Tensor &t : graph.tensors) {
      producer_.push_back(t.producer);
      slot_.push_back(slot_of(graph, t));
      dtype_.push_back(static_cast<uint8_t>(t.dtype));
      role_.push_back(static_cast<uint8_t>(role_of(t)));
    }
    first_.push_back(0);
    for (const Node &node : graph.nodes) {
      op_.push_back(node.operation->type.data());
      name_.push_back(node.name.c_str());
      flags_.push_back(node.operation->traits.flags);
      depth_.push_back(depth_of(graph, node));
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        input_.push_back(node.inputs[i].tensor);
        input_slot_.push_back(node.operation->input_slot(i));
      }
      first_.push_back(static_cast<int32_t>(input_.size()));
    }
  }

  mp_autocast_graph_t view() const {
    auto g = zero_struct<mp_autocast_graph_t>();
    g.num_nodes = static_cast<uint32_t>(op_.size());
    g.num_tensors = static_cast<uint32_t>(producer_.size());
    g.node_op = op_.data();
    g.node_name = name_.data();
    g.node_flags = flags_.data();
    g.node_depth = depth_.data();
    g.input_offsets = first_.data();
    g.input_tensor = input_.data();
    g.input_slot = input_slot_.data();
    g.tensor_producer = producer_.data();
    g.tensor_slot = slot_.data();
    g.tensor_dtype = dtype_.data();
    g.tensor_role = role_.data();
    return g;
  }

  size_t num_inputs() const { return input_.size(); }

 private:
  /// Returns the slot of a tensor; MP_AUTOCAST_SLOT_FP32 for state and data that nodes keep for
  /// backward.
  static uint8_t slot_of(const Graph &graph, const Tensor &t) {
    if (t.producer == kNone) return t.role == Role::state ? MP_AUTOCAST_SLOT_FP32 : 0;
    const Node &node = graph.node(t.producer);
    const auto id = static_cast<int32_t>(&t - graph.tensors.data());
    const auto output = std::ranges::find(node.outputs, id) - node.outputs.begin();
    return node.operation->output_slot(static_cast<size_t>(output));
  }

  static mp_tensor_role_t role_of(const Tensor &t) {
    if (t.role == Role::parameter) return MP_TENSOR_ROLE_PARAMETER;
    return t.is_output ? MP_TENSOR_ROLE_OUTPUT : MP_TENSOR_ROLE_ACTIVATION;
  }

  std::vector<const char *> op_, name_;
  std::vector<uint16_t> flags_;
  std::vector<int64_t> depth_;
  std::vector<int32_t> first_, input_, producer_;
  std::vector<uint8_t> input_slot_, slot_, dtype_, role_;
};

/// Applies Traits::writes_as_it_reads and reads_one_type to a node; readers of its output keep
/// their type.
/// @param keeps_io  outputs of the graph need an fp32 copy
void unify_types(Graph &graph, Node &node, bool keeps_io) {
  node.dtype = graph.dtype_read(node.inputs[0]);
  const auto reads_own_type = [](const Node &reader, size_t i) {
    return (reader.operation->traits.flags & MP_NODE_FLAG_READS_EITHER) == 0 ||
           reader.operation->input_slot(i) == MP_AUTOCAST_SLOT_FP32;
  };
  const size_t unified = node.operation->traits.reads_one_type ? node.inputs.size() : 1;
  for (size_t i = 1; i < unified; ++i) {
    Input &input = node.inputs[i];
    if (input.tensor == kNone || node.operation->input_slot(i) == MP_AUTOCAST_SLOT_FP32) continue;
    Tensor &t = graph.tensor(input.tensor);
    if (t.dtype == MP_DTYPE_NONE) continue;
    input.reads_copy = t.dtype != node.dtype;
    if (input.reads_copy) t.copy_dtype = node.dtype;
  }
  const int32_t id = node.outputs[0];
  Tensor &y = graph.tensor(id);
  if (y.dtype == node.dtype) return;
  const mp_dtype_t other = y.dtype;
  y.dtype = node.dtype;
  y.copy_dtype = keeps_io && y.is_output && other == MP_FP32 ? other : MP_DTYPE_NONE;
  for (Node &reader : graph.nodes)
    for (size_t i = 0; i < reader.inputs.size(); ++i) {
      Input &input = reader.inputs[i];
      if (input.tensor != id) continue;
      const bool is_wide = reader.operation->input_slot(i) == MP_AUTOCAST_SLOT_FP32;
      input.reads_copy = reads_own_type(reader, i) && (is_wide ? MP_FP32 : reader.dtype) == other;
      if (input.reads_copy) y.copy_dtype = other;
    }
}

/// Casts 16-bit inputs of the graph to fp32 for nodes that compute in fp32.  Autocast assigns no
/// type to these inputs.
void cast_up_inputs(Graph &graph, mp_autocast_t policy) {
  const mp_dtype_t low = policy != nullptr ? policy->policy.config.dtype_low : MP_DTYPE_NONE;
  const auto is_low_input = [&](const Input &input) {
    if (input.tensor == kNone) return false;
    const Tensor &t = graph.tensor(input.tensor);
    return t.role == Role::input && is_half(t.dtype);
  };
  for (Node &node : graph.nodes)
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_low_input(node.inputs[i])) continue;
      Tensor &t = graph.tensor(node.inputs[i].tensor);
      MP_REQUIRE(low == MP_DTYPE_NONE || t.dtype == low, MP_ERROR_INVALID_ARGUMENT, "input ",
                 t.name, ": dtype = ", mp_dtype_name(t.dtype), " must be fp32 or ",
                 mp_dtype_name(low), ", the 16-bit type of the policy");
      const bool is_wide =
          node.dtype == MP_FP32 || node.operation->input_slot(i) == MP_AUTOCAST_SLOT_FP32;
      const bool reads_either = (node.operation->traits.flags & MP_NODE_FLAG_READS_EITHER) != 0 &&
                                !(node.operation->traits.reads_one_type && policy == nullptr);
      if (!is_wide || reads_either) continue;
      node.inputs[i].reads_copy = true;
      t.copy_dtype = MP_FP32;
    }
}

Reports rewrite(Graph &graph, mp_autocast_t policy, mp_context_t context) {
  const AutocastArrays arrays(graph);
  const mp_autocast_graph_t view = arrays.view();
  std::vector<uint8_t> tensor_dtype(graph.tensors.size()), node_dtype(graph.nodes.size());
  std::vector<int32_t> input_cast(arrays.num_inputs());
  std::vector<mp_autocast_cast_t> casts(graph.tensors.size());
  auto result = zero_struct<mp_autocast_result_t>();
  result.tensor_dtype = tensor_dtype.data();
  result.node_dtype = node_dtype.data();
  result.input_cast = input_cast.data();
  result.casts = casts.data();
  require_success(mp_autocast_rewrite(policy, context, &view, &result));

  Reports reports;
  const autocast::Rewritten rewritten(policy->policy, view, result.disabled_reason);
  for (const auto format :
       {MP_AUTOCAST_FORMAT_TEXT, MP_AUTOCAST_FORMAT_JSON, MP_AUTOCAST_FORMAT_DOT})
    reports[format] = autocast::report(rewritten, format);

  for (size_t t = 0; t < graph.tensors.size(); ++t)
    graph.tensors[t].dtype = static_cast<mp_dtype_t>(tensor_dtype[t]);
  for (const mp_autocast_cast_t &c : std::span(casts).first(static_cast<size_t>(result.num_casts)))
    graph.tensor(c.tensor).copy_dtype = c.to;
  size_t j = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node &node = graph.nodes[i];
    node.dtype = static_cast<mp_dtype_t>(node_dtype[i]);
    for (Input &input : node.inputs) input.reads_copy = input_cast[j++] >= 0;
  }
  return reports;
}

}  // namespace

Reports cast(Graph &graph, mp_autocast_t policy, mp_context_t context) {
  Reports reports;
  if (policy != nullptr) reports = rewrite(graph, policy, context);
  cast_up_inputs(graph, policy);
  const bool keeps_io =
      policy != nullptr && (policy->policy.config.flags & MP_AUTOCAST_FLAG_KEEP_IO) != 0;
  for (Node &node : graph.nodes)
    if (node.operation->traits.writes_as_it_reads) unify_types(graph, node, keeps_io);
  return reports;
}

}  // namespace mp::graph
