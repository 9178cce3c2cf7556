#include "graph/rewrite/policy.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>

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

// ---------------------------------------------------------------------------- node names

namespace {

constexpr size_t kNone = std::string_view::npos;

/// Returns the position of the ] for the [ at `start`.  An initial ] is a member of the set.
size_t end_of_set(std::string_view pattern, size_t start) {
  size_t first = start + 1;
  if (first < pattern.size() && (pattern[first] == '!' || pattern[first] == '^')) first++;
  return pattern.find(']', first + 1);
}

/// @param set  text between [ and ]
bool set_has(std::string_view set, char c) {
  const bool is_inverted = set.front() == '!' || set.front() == '^';
  if (is_inverted) set.remove_prefix(1);
  const auto code = [](char of) { return static_cast<unsigned char>(of); };
  bool found = false;
  for (size_t i = 0; i < set.size(); i++) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    const char last = is_range ? set[i + 2] : set[i];
    found |= code(set[i]) <= code(c) && code(c) <= code(last);
    if (is_range) i += 2;
  }
  return found != is_inverted;
}

/// Matches one character with the pattern at `p`, which is not *.  Returns the next position in the
/// pattern, or nullopt if `c` does not match.
std::optional<size_t> match_one(std::string_view pattern, size_t p, char c) {
  if (p == pattern.size()) return std::nullopt;
  if (pattern[p] == '[') {
    const size_t end = end_of_set(pattern, p);
    if (!set_has(pattern.substr(p + 1, end - p - 1), c)) return std::nullopt;
    return end + 1;
  }
  if (pattern[p] != '?' && pattern[p] != c) return std::nullopt;
  return p + 1;
}

}  // namespace

bool is_glob(std::string_view pattern) {
  for (size_t p = 0; p < pattern.size(); p++) {
    if (pattern[p] != '[') continue;
    p = end_of_set(pattern, p);
    if (p == kNone) return false;
  }
  return true;
}

// Backtracks to the last * only: it can absorb any text that an earlier * left over.
bool glob_matches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t star = kNone;  // position in the pattern, behind the last *
  size_t resume = 0;    // end of the match of that * in the text
  for (size_t t = 0; t < text.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resume = t;
    } else if (const auto next = match_one(pattern, p, text[t])) {
      p = *next;
      t++;
    } else if (star != kNone) {
      p = star;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

// ---------------------------------------------------------------------------- presets

namespace {

constexpr ListedOp kOps[] = {
#include "graph/rewrite/op_lists.inc"
};

constexpr bool are_in_order() {
  for (size_t i = 1; i < std::size(kOps); i++)
    if (!(kOps[i - 1].name < kOps[i].name)) return false;
  return true;
}

constexpr bool have_known_letters() {
  return std::all_of(std::begin(kOps), std::end(kOps), [](const ListedOp &op) {
    return op.letters.size() == 5 &&
           op.letters.find_first_not_of("AIDCPX.") == std::string_view::npos;
  });
}

static_assert(are_in_order(), "op_lists.inc is sorted, and names every operation once");
static_assert(have_known_letters());

constexpr std::string_view kNeverForced[] = {
    "Const",
    "Constant",
    "NegativeLogLikelihoodLoss",
    "ReadVariableOp",
    "SoftmaxCrossEntropyLoss",
    "SoftmaxCrossEntropyWithLogits",
    "SoftmaxXent",
    "SparseSoftmaxCrossEntropyWithLogits",
    "VarHandleOp",
    "Variable",
    "VariableV2",
    "cross_entropy",
    "cross_entropy_loss",
    "nll_loss",
};
static_assert(std::is_sorted(std::begin(kNeverForced), std::end(kNeverForced)));

}  // namespace

mp_op_class_t ListedOp::op_class(mp_autocast_preset_t preset) const {
  switch (letter(preset)) {
    case 'A':
      return MP_OP_CLASS_ALLOW;
    case 'I':
      return MP_OP_CLASS_INFER;
    case 'C':
      return MP_OP_CLASS_CLEAR;
    case 'P':
      return MP_OP_CLASS_PROMOTE;
    case 'D':
    case 'X':
      return MP_OP_CLASS_DENY;
    default:
      return MP_OP_CLASS_UNLISTED;
  }
}

std::span<const ListedOp> listed_ops() {
  return kOps;
}

bool is_never_forced(std::string_view op) {
  return std::binary_search(std::begin(kNeverForced), std::end(kNeverForced), op);
}

}  // namespace mp::autocast
