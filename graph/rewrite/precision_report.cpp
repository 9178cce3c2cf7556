#include "graph/rewrite/casts.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/escape.h"

namespace mp::autocast {

namespace {

std::string number(int64_t value) {
  return std::to_string(value);
}

std::string name_of(const mp_autocast_graph_t &graph, int32_t node) {
  const char *const name = graph.node_name != nullptr ? graph.node_name[node] : nullptr;
  return name != nullptr && name[0] != '\0' ? name : "#" + number(node);
}

std::string op_of(const mp_autocast_graph_t &graph, int32_t node) {
  const char *const op = graph.node_op != nullptr ? graph.node_op[node] : nullptr;
  return op != nullptr ? op : "-";
}

/// Quotes text as a DOT string; DOT does not support \u.
std::string dot_string(std::string_view text) {
  return json_string(escaped(text));
}

// ---------------------------------------------------------------------------- data of a node

struct NodeReport {
  mp_dtype_t dtype;
  mp_autocast_reason_t reason;
  int32_t cause;     ///< a node, or -1
  int32_t upstream;  ///< MP_AUTOCAST_REASON_BETWEEN_ALLOW: the other cause
};

NodeReport look_at(const Rewritten &r, int32_t node) {
  if (r.assignment == nullptr) return {MP_FP32, MP_AUTOCAST_REASON_DISABLED, -1, -1};
  const PrecisionAssignment &assignment = *r.assignment;
  return {assignment.is_low_node(node) ? r.low : MP_FP32, assignment.reason(node),
          assignment.cause(node), assignment.upstream(node)};
}

/// Returns the reason as text, for a line that also contains the type.
std::string reason_text(const Rewritten &r, const NodeReport &node) {
  const std::string cause = node.cause >= 0 ? name_of(r.graph, node.cause) : "";
  switch (node.reason) {
    case MP_AUTOCAST_REASON_UNLISTED:
      return "in no list";
    case MP_AUTOCAST_REASON_DENY_LIST:
      return "on the deny list";
    case MP_AUTOCAST_REASON_DENY_UPSTREAM:
      return "downstream of " + cause + ", which is denied";
    case MP_AUTOCAST_REASON_RANGE:
      return "a tensor exceeds amax_limit";
    case MP_AUTOCAST_REASON_DEPTH:
      return "a sum exceeds depth_limit";
    case MP_AUTOCAST_REASON_KEPT:
      return "kept";
    case MP_AUTOCAST_REASON_OTHER_DEVICE:
      return "on another device";
    case MP_AUTOCAST_REASON_NO_KERNEL:
      return "no 16-bit kernel";
    case MP_AUTOCAST_REASON_NO_ALLOW_NEARBY:
      return r.assignment->uses_torch_rules() ? "not all inputs are 16-bit"
                                              : "not between 16-bit nodes";
    case MP_AUTOCAST_REASON_NOT_FLOAT:
      return "reads and writes no fp32 tensor";
    case MP_AUTOCAST_REASON_DISABLED:
      return "the rewrite is disabled";
    case MP_AUTOCAST_REASON_CLUSTER_FP32:
      return "must have the type of " + (cause.empty() ? "its loop" : cause);
    case MP_AUTOCAST_REASON_ALLOW_LIST:
      return "on the allow list";
    case MP_AUTOCAST_REASON_BETWEEN_ALLOW:
      return "between " + name_of(r.graph, node.upstream) + " and " + cause;
    case MP_AUTOCAST_REASON_FOLLOWS_ALLOW:
      return cause.empty() ? "its inputs are 16-bit" : "follows " + cause;
    case MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW:
      return "next to " + cause;
    case MP_AUTOCAST_REASON_CLUSTER_LOW:
      return "must have the type of " + cause;
    case MP_AUTOCAST_REASON_CAST_ABSORBED:
      return "cast absorbed by " + cause;
    case MP_AUTOCAST_REASON_PATTERN:
      return "allowed by name";
  }
  return "?";
}

std::string_view word_of(mp_autocast_reason_t reason) {
  switch (reason) {
    case MP_AUTOCAST_REASON_UNLISTED:
      return "unlisted";
    case MP_AUTOCAST_REASON_DENY_LIST:
      return "deny_list";
    case MP_AUTOCAST_REASON_DENY_UPSTREAM:
      return "deny_upstream";
    case MP_AUTOCAST_REASON_RANGE:
      return "range";
    case MP_AUTOCAST_REASON_DEPTH:
      return "depth";
    case MP_AUTOCAST_REASON_KEPT:
      return "kept";
    case MP_AUTOCAST_REASON_OTHER_DEVICE:
      return "other_device";
    case MP_AUTOCAST_REASON_NO_KERNEL:
      return "no_kernel";
    case MP_AUTOCAST_REASON_NO_ALLOW_NEARBY:
      return "no_allow_nearby";
    case MP_AUTOCAST_REASON_NOT_FLOAT:
      return "not_float";
    case MP_AUTOCAST_REASON_DISABLED:
      return "disabled";
    case MP_AUTOCAST_REASON_CLUSTER_FP32:
      return "cluster_fp32";
    case MP_AUTOCAST_REASON_ALLOW_LIST:
      return "allow_list";
    case MP_AUTOCAST_REASON_BETWEEN_ALLOW:
      return "between_allow";
    case MP_AUTOCAST_REASON_FOLLOWS_ALLOW:
      return "follows_allow";
    case MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW:
      return "clear_next_to_low";
    case MP_AUTOCAST_REASON_CLUSTER_LOW:
      return "cluster_low";
    case MP_AUTOCAST_REASON_CAST_ABSORBED:
      return "cast_absorbed";
    case MP_AUTOCAST_REASON_PATTERN:
      return "pattern";
  }
  return "?";
}

struct Summary {
  int64_t low_nodes = 0;
  int64_t casts = 0;
  int64_t model_copies = 0;
};

Summary summary_of(const Rewritten &r) {
  Summary s;
  if (r.assignment == nullptr) return s;
  for (int32_t i = 0; i < static_cast<int32_t>(r.graph.num_nodes); i++)
    s.low_nodes += r.assignment->is_low_node(i) ? 1 : 0;
  s.casts = r.casts->count();
  s.model_copies = r.casts->num_model_copies();
  return s;
}

std::vector<mp_autocast_cast_t> casts_of(const Rewritten &r) {
  std::vector<mp_autocast_cast_t> casts;
  if (r.casts == nullptr) return casts;
  casts.resize(static_cast<size_t>(r.casts->count()));
  r.casts->write(nullptr, nullptr, casts.data());
  return casts;
}

// ---------------------------------------------------------------------------- text

std::string as_text(const Rewritten &r) {
  const auto num_nodes = static_cast<int32_t>(r.graph.num_nodes);
  const auto name = [&](int32_t i) { return escaped(name_of(r.graph, i)); };
  const auto op = [&](int32_t i) { return escaped(op_of(r.graph, i)); };
  size_t name_width = 0, op_width = 0;
  for (int32_t i = 0; i < num_nodes; i++) {
    name_width = std::max(name_width, name(i).size());
    op_width = std::max(op_width, op(i).size());
  }
  // Limits the width, so that one long name does not push everything off screen.
  const auto padded = [](std::string text, size_t width) {
    constexpr size_t kWidest = 40;
    text.resize(std::max(text.size(), std::min(width, kWidest)), ' ');
    return text + "  ";
  };
  std::string text;
  for (int32_t i = 0; i < num_nodes; i++) {
    const NodeReport node = look_at(r, i);
    text += padded(name(i), name_width) + padded(op(i), op_width) + mp_dtype_name(node.dtype) +
            "  " + escaped(reason_text(r, node)) + "\n";
  }
  if (r.disabled_reason != nullptr)
    return text + "the rewrite is disabled: " + r.disabled_reason + "\n";
  const Summary s = summary_of(r);
  return text + number(s.low_nodes) + " of " + number(num_nodes) + " nodes in " +
         mp_dtype_name(r.low) + "; casts: " + number(s.casts - s.model_copies) + " by a kernel, " +
         number(s.model_copies) + " by the optimizer's copy\n";
}

// ---------------------------------------------------------------------------- JSON

std::string as_json(const Rewritten &r) {
  const Summary s = summary_of(r);
  std::string text = "{\"low\": " + json_string(mp_dtype_name(r.low)) + ", \"disabled_reason\": " +
                     (r.disabled_reason != nullptr ? json_string(r.disabled_reason) : "null") +
                     ", \"num_nodes\": " + number(r.graph.num_nodes) +
                     ", \"num_low_nodes\": " + number(s.low_nodes) +
                     ", \"num_casts\": " + number(s.casts) +
                     ", \"num_parameters_low\": " + number(s.model_copies) + ",\n \"nodes\": [";
  for (int32_t i = 0; i < static_cast<int32_t>(r.graph.num_nodes); i++) {
    const NodeReport node = look_at(r, i);
    text += std::string(i > 0 ? "," : "") + "\n  {\"name\": " + json_string(name_of(r.graph, i)) +
            ", \"op\": " + json_string(op_of(r.graph, i)) +
            ", \"dtype\": " + json_string(mp_dtype_name(node.dtype)) +
            ", \"reason\": " + json_string(word_of(node.reason)) +
            ", \"cause\": " + (node.cause >= 0 ? number(node.cause) : "null") +
            ", \"text\": " + json_string(reason_text(r, node)) + "}";
  }
  text += "],\n \"casts\": [";
  std::string_view separator;
  for (const mp_autocast_cast_t &cast : casts_of(r)) {
    text += std::string(separator) + "\n  {\"tensor\": " + number(cast.tensor) +
            ", \"from\": " + json_string(mp_dtype_name(cast.from)) +
            ", \"to\": " + json_string(mp_dtype_name(cast.to)) + ", \"by\": " +
            (cast.kind == MP_CAST_KIND_MODEL_COPY ? "\"model_copy\"" : "\"kernel\"") +
            ", \"readers\": " + number(cast.readers) + "}";
    separator = ",";
  }
  return text + "]}\n";
}

// ---------------------------------------------------------------------------- DOT

// Light enough for black text, even when printed in grayscale.
constexpr std::string_view kLowFill = "palegreen3", kFp32Fill = "lightcoral", kOtherFill = "white";

std::string dot_node(const Rewritten &r, int32_t i) {
  const NodeReport node = look_at(r, i);
  std::string_view fill = kFp32Fill;
  if (node.reason == MP_AUTOCAST_REASON_NOT_FLOAT || r.assignment == nullptr) fill = kOtherFill;
  if (node.dtype == r.low) fill = kLowFill;
  // A line break is the two characters \n, which dot_string() would escape.
  std::string label = dot_string(name_of(r.graph, i));
  const std::string op = dot_string(op_of(r.graph, i));
  label.insert(label.size() - 1, "\\n" + op.substr(1, op.size() - 2));
  return "  n" + number(i) + " [label=" + label + ", fillcolor=" + std::string(fill) +
         ", tooltip=" +
         dot_string(std::string(mp_dtype_name(node.dtype)) + ": " + reason_text(r, node)) + "];\n";
}

std::string as_dot(const Rewritten &r) {
  std::string text =
      "digraph autocast {\n  node [shape=box, style=filled, fontname=Helvetica];\n"
      "  edge [fontname=Helvetica];\n";
  for (int32_t i = 0; i < static_cast<int32_t>(r.graph.num_nodes); i++) text += dot_node(r, i);
  const std::vector<mp_autocast_cast_t> casts = casts_of(r);
  std::vector<bool> is_drawn(r.graph.num_tensors, false);
  for_each_input(r.graph, [&](int32_t node, int32_t input, int32_t tensor) {
    const int32_t producer = r.graph.tensor_producer[tensor];
    const int32_t cast = r.casts != nullptr ? r.casts->cast_of_input(node, input) : -1;
    std::string from = "n" + number(producer);
    if (producer < 0) {
      if (cast < 0) return;  // external and without a cast: not drawn
      from = "t" + number(tensor);
      if (!is_drawn[static_cast<size_t>(tensor)])
        text += "  " + from + " [label=\"tensor " + number(tensor) +
                "\", shape=ellipse, style=solid];\n";
      is_drawn[static_cast<size_t>(tensor)] = true;
    }
    text += "  " + from + " -> n" + number(node);
    if (cast >= 0) {
      const mp_autocast_cast_t &c = casts[static_cast<size_t>(cast)];
      const bool is_copy = c.kind == MP_CAST_KIND_MODEL_COPY;
      text += " [label=\"" + std::string(is_copy ? "copy in " : "cast to ") + mp_dtype_name(c.to) +
              "\", style=" + (is_copy ? "dashed" : "bold") + "]";
    }
    text += ";\n";
  });
  for (uint32_t e = 0; e < r.graph.num_hidden_edges; e++)
    text += "  n" + number(r.graph.hidden_src[e]) + " -> n" + number(r.graph.hidden_dst[e]) +
            " [style=dotted];\n";
  return text + "}\n";
}

}  // namespace

std::string report(const Rewritten &rewritten, mp_autocast_format_t format) {
  switch (format) {
    case MP_AUTOCAST_FORMAT_JSON:
      return as_json(rewritten);
    case MP_AUTOCAST_FORMAT_DOT:
      return as_dot(rewritten);
    default:
      return as_text(rewritten);
  }
}

}  // namespace mp::autocast
