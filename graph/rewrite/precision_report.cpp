#include "graph/rewrite/casts.h"

#include <algorithm>
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
  if (!r.assignment) return {MP_FP32, MP_AUTOCAST_REASON_DISABLED, -1, -1};
  const PrecisionAssignment &assignment = *r.assignment;
  return {assignment.is_low_node(node) ? r.low : MP_FP32, assignment.reason(node),
          assignment.cause(node), assignment.upstream(node)};
}

/// Reasons: word in JSON, text for a line that also contains the type, and the text without a
/// cause, if it differs.  In texts, % is the cause and & the other cause.
#define MP_REASONS(X)                                                                          \
  X(UNLISTED, "unlisted", "in no list", "")                                                    \
  X(DENY_LIST, "deny_list", "on the deny list", "")                                            \
  X(DENY_UPSTREAM, "deny_upstream", "downstream of %, which is denied", "")                    \
  X(RANGE, "range", "a tensor exceeds amax_limit", "")                                         \
  X(DEPTH, "depth", "a sum exceeds depth_limit", "")                                           \
  X(KEPT, "kept", "kept", "")                                                                  \
  X(OTHER_DEVICE, "other_device", "on another device", "")                                     \
  X(NO_KERNEL, "no_kernel", "no 16-bit kernel", "")                                            \
  X(NO_ALLOW_NEARBY, "no_allow_nearby", "not between 16-bit nodes", "")                        \
  X(NOT_FLOAT, "not_float", "reads and writes no fp32 tensor", "")                             \
  X(DISABLED, "disabled", "the rewrite is disabled", "")                                       \
  X(CLUSTER_FP32, "cluster_fp32", "must have the type of %", "must have the type of its loop") \
  X(ALLOW_LIST, "allow_list", "on the allow list", "")                                         \
  X(BETWEEN_ALLOW, "between_allow", "between & and %", "")                                     \
  X(FOLLOWS_ALLOW, "follows_allow", "follows %", "its inputs are 16-bit")                      \
  X(CLEAR_NEXT_TO_LOW, "clear_next_to_low", "next to %", "")                                   \
  X(CLUSTER_LOW, "cluster_low", "must have the type of %", "")                                 \
  X(CAST_ABSORBED, "cast_absorbed", "cast absorbed by %", "")                                  \
  X(PATTERN, "pattern", "allowed by name", "")

struct ReasonWords {
  std::string_view word, text, text_without_cause;
};

ReasonWords words_of(mp_autocast_reason_t reason) {
  switch (reason) {
#define MP_REASON(name, ...)      \
  case MP_AUTOCAST_REASON_##name: \
    return {__VA_ARGS__};
    MP_REASONS(MP_REASON)
#undef MP_REASON
  }
  return {"?", "?", ""};
}

std::string reason_text(const Rewritten &r, const NodeReport &node) {
  if (node.reason == MP_AUTOCAST_REASON_NO_ALLOW_NEARBY && r.assignment->uses_torch_rules())
    return "not all inputs are 16-bit";
  const ReasonWords words = words_of(node.reason);
  const bool lacks_cause = node.cause < 0 && !words.text_without_cause.empty();
  std::string text;
  for (const char c : lacks_cause ? words.text_without_cause : words.text)
    if (c == '%')
      text += node.cause >= 0 ? name_of(r.graph, node.cause) : "";
    else if (c == '&')
      text += name_of(r.graph, node.upstream);
    else
      text += c;
  return text;
}

struct Summary {
  int64_t low_nodes = 0;
  int64_t casts = 0;
  int64_t model_copies = 0;
};

Summary summary_of(const Rewritten &r) {
  Summary s;
  if (!r.assignment) return s;
  for (int32_t i = 0; i < static_cast<int32_t>(r.graph.num_nodes); i++)
    s.low_nodes += r.assignment->is_low_node(i) ? 1 : 0;
  s.casts = r.casts->count();
  s.model_copies = r.casts->num_model_copies();
  return s;
}

std::vector<mp_autocast_cast_t> casts_of(const Rewritten &r) {
  std::vector<mp_autocast_cast_t> casts;
  if (!r.casts) return casts;
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
            ", \"reason\": " + json_string(words_of(node.reason).word) +
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
  if (node.reason == MP_AUTOCAST_REASON_NOT_FLOAT || !r.assignment) fill = kOtherFill;
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
    const int32_t cast = r.casts ? r.casts->cast_of_input(node, input) : -1;
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
