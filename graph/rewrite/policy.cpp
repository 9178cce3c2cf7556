#include "graph/rewrite/policy.h"

#include <algorithm>
#include <iterator>

#include "base/escape.h"

namespace mp::autocast {

namespace {

/// Maps operations to their V2 versions, which TensorFlow's optimizer substitutes first.
std::string_view without_alias(std::string_view op) {
  if (op == "FusedBatchNorm") return "FusedBatchNormV2";
  if (op == "FusedBatchNormGrad") return "FusedBatchNormGradV2";
  return op;
}

}  // namespace

std::string_view class_name(mp_op_class_t op_class) {
  switch (op_class) {
    case MP_OP_CLASS_UNLISTED:
      return "unlisted";
    case MP_OP_CLASS_ALLOW:
      return "allow";
    case MP_OP_CLASS_INFER:
      return "infer";
    case MP_OP_CLASS_DENY:
      return "deny";
    case MP_OP_CLASS_CLEAR:
      return "clear";
    case MP_OP_CLASS_PROMOTE:
      return "promote";
  }
  return "?";
}

Policy::Policy(const mp_autocast_config_t &config) : config(config) {
  for (const ListedOp &op : listed_ops()) {
    if (!op.is_listed(config.preset)) continue;
    ops_.emplace(op.name, OpClass{op.op_class(config.preset), op.is_banned(config.preset)});
  }
}

void Policy::set_class(std::string_view op, mp_op_class_t op_class) {
  ops_.insert_or_assign(std::string(op), OpClass{op_class, false});
}

void Policy::forget(std::string_view op) {
  const auto found = ops_.find(op);
  if (found != ops_.end()) ops_.erase(found);
}

void Policy::set_nodes(std::string_view pattern, mp_op_class_t op_class) {
  patterns_.push_back({std::string(pattern), op_class});
}

std::optional<OpClass> Policy::listed(std::string_view op) const {
  auto found = ops_.find(op);
  if (found == ops_.end()) found = ops_.find(without_alias(op));
  if (found == ops_.end()) return std::nullopt;
  return found->second;
}

bool Policy::is_banned(std::string_view op) const {
  const std::optional<OpClass> known = listed(op);
  return known.has_value() && known->is_banned;
}

mp_op_class_t Policy::class_of(std::string_view op) const {
  if (const std::optional<OpClass> known = listed(op)) return known->op_class;
  return uses_torch_rules() ? MP_OP_CLASS_CLEAR : MP_OP_CLASS_UNLISTED;
}

NodeClass Policy::class_of_node(const mp_autocast_graph_t &graph, uint32_t i) const {
  const char *const name = graph.node_name != nullptr ? graph.node_name[i] : nullptr;
  if (name != nullptr) {
    const auto last = std::find_if(patterns_.rbegin(), patterns_.rend(),
                                   [&](const Pattern &p) { return glob_matches(p.text, name); });
    if (last != patterns_.rend()) return {last->op_class, true};
  }
  if (graph.node_class != nullptr && graph.node_class[i] != 0)
    return {static_cast<mp_op_class_t>(graph.node_class[i] - 1), false};
  return {class_of(graph.node_op[i]), false};
}

mp_op_class_t Policy::at_level(mp_op_class_t op_class) const {
  const bool is_infer =
      op_class == MP_OP_CLASS_INFER || (op_class == MP_OP_CLASS_PROMOTE && !uses_torch_rules());
  switch (config.level) {
    case MP_AUTOCAST_LEVEL_INFER_AS_DENY:
      return is_infer ? MP_OP_CLASS_DENY : op_class;
    case MP_AUTOCAST_LEVEL_TENSOR_CORES_ONLY:
      return op_class == MP_OP_CLASS_ALLOW ? MP_OP_CLASS_ALLOW : MP_OP_CLASS_UNLISTED;
    default:
      return is_infer ? MP_OP_CLASS_INFER : op_class;
  }
}

std::string Policy::lists_as_text() const {
  std::string text;
  for (const mp_op_class_t wanted :
       {MP_OP_CLASS_ALLOW, MP_OP_CLASS_INFER, MP_OP_CLASS_DENY, MP_OP_CLASS_CLEAR,
        MP_OP_CLASS_PROMOTE, MP_OP_CLASS_UNLISTED}) {
    std::vector<std::string_view> names;
    for (const auto &[name, known] : ops_)
      if (known.op_class == wanted) names.push_back(name);
    if (names.empty()) continue;
    std::sort(names.begin(), names.end());
    text += std::string(class_name(wanted)) + ":";
    for (const std::string_view name : names) text += " " + escaped(name);
    text += "\n";
  }
  for (const Pattern &pattern : patterns_)
    text += std::string(class_name(pattern.op_class)) + " by name: " + escaped(pattern.text) + "\n";
  return text;
}

}  // namespace mp::autocast
