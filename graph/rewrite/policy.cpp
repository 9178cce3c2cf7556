#include "graph/rewrite/policy.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "base/escape.h"

namespace mp::autocast {

// ---------------------------------------------------------------------------- presets

namespace {

/// Classes by enumerator: letter in op_lists.inc, name.
constexpr struct {
  char letter;
  std::string_view name;
} kClasses[] = {{'.', "unlisted"}, {'A', "allow"}, {'I', "infer"},
                {'D', "deny"},     {'C', "clear"}, {'P', "promote"}};
static_assert(std::size(kClasses) == MP_OP_CLASS_PROMOTE + 1);

/// @param letter  X: in a graph, an operation that must not be used in eager mode is denied
mp_op_class_t class_of_letter(char letter) {
  size_t i = 0;
  while (kClasses[i].letter != (letter == 'X' ? 'D' : letter)) ++i;
  return static_cast<mp_op_class_t>(i);
}

/// Row of op_lists.inc: operations with the same class in each preset.
struct ListedOps {
  std::string_view letters;  ///< one per preset
  std::string_view names;    ///< separated by spaces and newlines
};

constexpr ListedOps kOps[] = {
#include "graph/rewrite/op_lists.inc"
};

template <class F>
constexpr void for_each_name(const ListedOps &ops, const F &f) {
  constexpr std::string_view kSpace = " \n";
  for (size_t begin = 0; (begin = ops.names.find_first_not_of(kSpace, begin)) != ops.names.npos;) {
    const size_t end = std::min(ops.names.find_first_of(kSpace, begin), ops.names.size());
    f(ops.names.substr(begin, end - begin));
    begin = end;
  }
}

constexpr size_t num_names() {
  size_t count = 0;
  for (const ListedOps &ops : kOps) for_each_name(ops, [&](std::string_view) { ++count; });
  return count;
}

constexpr bool is_each_listed_once() {
  std::array<std::string_view, num_names()> names;
  size_t count = 0;
  for (const ListedOps &ops : kOps)
    for_each_name(ops, [&](std::string_view name) { names[count++] = name; });
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) == names.end();
}

constexpr bool have_known_letters() {
  return std::ranges::all_of(kOps, [](const ListedOps &ops) {
    return ops.letters.size() == 5 &&
           ops.letters.find_first_not_of("AIDCPX.") == std::string_view::npos;
  });
}

static_assert(is_each_listed_once(), "op_lists.inc names every operation once");
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

bool is_never_forced(std::string_view op) {
  return std::binary_search(std::begin(kNeverForced), std::end(kNeverForced), op);
}

// ---------------------------------------------------------------------------- policies

std::string_view class_name(mp_op_class_t op_class) {
  return kClasses[op_class].name;
}

Policy::Policy(const mp_autocast_config_t &config) : config(config) {
  for (const ListedOps &ops : kOps) {
    const char letter = ops.letters[config.preset - MP_AUTOCAST_PRESET_DEFAULT];
    if (letter == '.') continue;
    const OpClass listed{class_of_letter(letter), letter == 'X'};
    for_each_name(ops, [&](std::string_view name) { ops_.emplace(name, listed); });
  }
}

void Policy::set_class(std::string_view op, mp_op_class_t op_class) {
  ops_.insert_or_assign(std::string(op), OpClass{op_class, false});
}

void Policy::forget(std::string_view op) {
  if (const auto found = ops_.find(op); found != ops_.end()) ops_.erase(found);
}

void Policy::set_nodes(std::string_view pattern, mp_op_class_t op_class) {
  patterns_.push_back({std::string(pattern), op_class});
}

std::optional<OpClass> Policy::listed(std::string_view op) const {
  auto found = ops_.find(op);
  // TensorFlow's optimizer first substitutes the V2 versions of these operations.
  if (found == ops_.end() && (op == "FusedBatchNorm" || op == "FusedBatchNormGrad"))
    found = ops_.find(std::string(op) + "V2");
  if (found == ops_.end()) return std::nullopt;
  return found->second;
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

}  // namespace mp::autocast
