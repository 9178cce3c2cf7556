#include "graph/executor/emitter.h"

#include <algorithm>

#include "base/escape.h"
#include "capi/context.h"

namespace mp::graph {

namespace {

std::string text_of(const Graph &graph, const Input &input) {
  return escaped(graph.tensor(input.tensor).name) + " " + mp_dtype_name(graph.dtype_read(input));
}

/// Returns e.g. "fc1, relu1  mp_gemm  x fp16, fc1.w fp16 -> y fp16 [128 256]".
std::string describe(const Graph &graph, const Node &node, const char *function, size_t only) {
  std::string text = escaped(node.name);
  for (const std::string &name : node.fused.names) text += ", " + escaped(name);
  text += std::string("  ") + function + "  ";
  const char *between = "";
  for (const Input &input : node.inputs) {
    if (input.tensor == kNone) continue;
    text += between + text_of(graph, input);
    between = ", ";
  }
  text += " ->";
  between = " ";
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.has_output(i) || (only != Emitter::kAllOutputs && i != only)) continue;
    const Tensor &t = graph.out(node, i);
    text +=
        between + escaped(t.name) + " " + mp_dtype_name(t.dtype) + " " + graph::text_of(t.extent);
    between = ", ";
  }
  return text;
}

}  // namespace

Emitter::Emitter(Graph &graph, mp_context_t context)
    : graph_(graph), context_(context), table_(graph) {}

void Emitter::emit_all() {
  const auto is_from_outside = [](const Tensor &t) { return t.role == Role::input; };
  for (size_t t = 0; t < graph_.tensors.size(); ++t)
    if (is_from_outside(graph_.tensors[t])) emit_cast(static_cast<int32_t>(t));
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node &node = graph_.nodes[i];
    if (node.is_absorbed) continue;
    node_ = static_cast<int32_t>(i);
    if (node.operation->emit != nullptr) node.operation->emit(*this, node);
    // In training, the node of the loss gradient writes the outputs of the loss.
    if (&node != graph_.loss_node()) emit_casts(node);
    if (computes_loss(graph_, node)) emit_casts(*graph_.loss_node());
  }
  if (counts_steps) emit_count();
}

AddressIndex Emitter::ones(mp_dtype_t dtype, int64_t count) {
  int64_t &most = num_ones[static_cast<size_t>(dtype)];
  most = std::max(most, count);
  return table_.ones(dtype);
}

AddressIndex Emitter::zeros(size_t bytes) {
  zero_bytes = std::max(zero_bytes, bytes);
  return table_.zeros();
}

AddressIndex Emitter::steps() {
  counts_steps = true;
  return table_.steps();
}

/// Counts at the end of the forward pass, so that a failed pass generates the same masks when it is
/// repeated.  Uses a kernel, so that replays of a CUDA graph are counted.
void Emitter::emit_count() {
  const AddressIndex steps = table_.steps();
  Call call = [=](const LaunchArgs &run) {
    if (!run.is_training) return MP_SUCCESS;
    increment(*run.context->shared, static_cast<uint64_t *>(run.at(steps)), run.stream);
    return MP_SUCCESS;
  };
  const auto last =
      std::ranges::find(launches.rbegin(), launches.rend(), Phase::forward, &Launch::phase);
  launches.insert(last.base(),
                  {Phase::forward, "step  counted for dropout masks", std::move(call)});
}

void Emitter::needs_workspace(size_t bytes) {
  workspace_bytes = std::max(workspace_bytes, bytes);
}

void Emitter::size_output(const Node &node, size_t i, size_t bytes) {
  if (!node.has_output(i)) return;
  Extent &extent = graph_.tensor(node.outputs[i]).extent;
  if (extent.empty()) extent = {static_cast<int64_t>(bytes)};
}

void Emitter::append(const char *name, Call call, size_t output) {
  const Node &node = graph_.node(node_);
  Ports inputs, outputs;
  for (size_t i = 0; i < kMaxPorts; ++i) {
    inputs[i] = in(node, i);
    outputs[i] = out(node, i);
  }
  launches.push_back({phase_of(graph_, node), describe(graph_, node, name, output), std::move(call),
                      inputs, outputs});
}

void Emitter::emit_casts(const Node &node) {
  node.for_each_output([&](int32_t output) {
    if (!node.fused.writes_copy || output != node.outputs[0]) emit_cast(output);
  });
}

void Emitter::emit_cast(int32_t tensor) {
  const Tensor &t = graph_.tensor(tensor);
  if (t.copy_dtype == MP_DTYPE_NONE) return;
  Phase phase = t.producer != kNone ? phase_of(graph_, graph_.node(t.producer)) : Phase::forward;
  if (phase == Phase::loss) phase = Phase::after_loss;
  const AddressIndex from = AddressTable::of({tensor, false});
  const AddressIndex to = AddressTable::of({tensor, true});
  // Constructed first: g++ 11 leaks members of an aggregate if a later one throws (GCC bug 66139).
  Call call = [=, source = t.dtype, target = t.copy_dtype,
               numel = t.numel()](const LaunchArgs &run) {
    if (run.at(from) == nullptr) return MP_SUCCESS;  // optional input that is not bound
    return mp_cast(run.context, run.at(from), source, run.at(to), target, numel, run.stream);
  };
  launches.push_back({phase,
                      std::string("cast  mp_cast  ") + text_of(graph_, {tensor, false}) + " -> " +
                          text_of(graph_, {tensor, true}) + " " + graph::text_of(t.extent),
                      std::move(call)});
}

void emit_copy(Emitter &e, const mp_strided_copy_desc_t &desc, AddressIndex x, int64_t x_offset,
               AddressIndex y, int64_t y_offset, size_t output) {
  const auto elem = static_cast<int64_t>(mp_dtype_size(desc.dtype));
  e.append(
      "mp_strided_copy",
      [=](const LaunchArgs &run) {
        return mp_strided_copy(
            run.context, &desc, static_cast<const char *>(run.at(x)) + x_offset * elem,
            static_cast<char *>(run.at(y)) + y_offset * elem, &run.stats, run.stream);
      },
      output);
}

}  // namespace mp::graph
