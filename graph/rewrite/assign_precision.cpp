// Assigns a precision to every vertex of a graph, in these steps:
//
//     0  Each vertex gets its class: by pattern, graph or list, then by level and limits.
//     1  ALLOW vertices are 16-bit, except on MP_AUTOCAST_SLOT_FP32, which propagates no type.
//     2  DENY propagates forward through INFER, and through CLEAR that leads to INFER or DENY.
//     3  INFER and CLEAR vertices between two 16-bit ALLOW vertices become 16-bit unless denied.
//     4  Type with the exponents of fp32: an INFER vertex that reads a 16-bit vertex becomes 16-bit
//        unless it also reads a denied one.
//     5  CLEAR vertices connected to a 16-bit vertex through CLEAR become 16-bit.
//     6  finalize.cpp: vertices without a 16-bit kernel revert, clusters agree, casts are absorbed.
//
// Example of step 2:
//
//     deny -> infer1 -> clear1 -> infer2 -> clear2 -> allow
//
// infer1, clear1 and infer2 are denied, because they compute with the large values of deny.  clear2
// is not denied: only a matrix product follows, which reads 16 bits anyway.  Step 5 makes clear2
// 16-bit, so that it copies half the bytes.
//
// Sources: auto_mixed_precision.cc of TensorFlow's grappler; for the limits NVIDIA ModelOpt
// AutoCast.
#include "graph/rewrite/assign_precision.h"

namespace mp::autocast {

PrecisionAssignment::PrecisionAssignment(const Policy &policy, const mp_autocast_graph_t &graph)
    : policy_(policy), graph_(graph), vertices_(graph) {
  const auto count = static_cast<size_t>(vertices_.count());
  class_.resize(count);
  bits_.resize(count);
  reasons_.resize(count);
  causes_.resize(count, -1);
  origin_.resize(count, -1);
  queue_.reserve(count);

  classify();
  allow();
  deny();
  containers();
  if (policy_.uses_torch_rules()) {
    propagate_forward();
  } else {
    between_allow();
    if (has_fp32_range(policy_.config.dtype_low)) follow_allow();
    clear_next_to_low();
  }
  revert_unsupported();
  containers();
  loops();
  unify_clusters();
  absorb_casts();
}

// ---------------------------------------------------------------------------- 0: classes

void PrecisionAssignment::classify() {
  for (int32_t i = 0; i < static_cast<int32_t>(graph_.num_nodes); i++) {
    const uint16_t flags = flags_of(graph_, i);
    const NodeClass node = policy_.class_of_node(graph_, static_cast<uint32_t>(i));
    const bool is_patterned = node.is_by_pattern && node.op_class == MP_OP_CLASS_ALLOW;
    for (int32_t v = vertices_.of_node(i); v < vertices_.end_of_node(i); v++) {
      class_[static_cast<size_t>(v)] = static_cast<uint8_t>(policy_.at_level(node.op_class));
      if ((flags & (MP_NODE_FLAG_KEEP_FP32 | MP_NODE_FLAG_OTHER_DEVICE)) == 0) set(v, kProcessable);
      const bool has_kernel =
          (flags & MP_NODE_FLAG_NO_LOW) == 0 && vertices_.slot(v) != MP_AUTOCAST_SLOT_FP32;
      if (has_kernel && vertices_.is_eligible(v)) set(v, kAble);
      if ((flags & MP_NODE_FLAG_READS_VARIABLE) != 0) set(v, kReadsVariable);
      if (is_patterned) give_reason(v, MP_AUTOCAST_REASON_PATTERN, -1);
    }
  }
  if (policy_.config.level == MP_AUTOCAST_LEVEL_FORCE_ALL) force_all();
  apply_limits();
}

/// MP_AUTOCAST_LEVEL_FORCE_ALL: makes all vertices ALLOW, except constants, state and
/// cross-entropies.
void PrecisionAssignment::force_all() {
  std::vector<bool> is_state(graph_.num_nodes, false);
  for (int32_t t = 0; t < static_cast<int32_t>(graph_.num_tensors); t++)
    if (role_of(graph_, t) == MP_TENSOR_ROLE_PARAMETER && graph_.tensor_producer[t] >= 0)
      is_state[static_cast<size_t>(graph_.tensor_producer[t])] = true;
  for (int32_t v = 0; v < vertices_.count(); v++) {
    const auto node = static_cast<size_t>(vertices_.node(v));
    const char *const op = graph_.node_op != nullptr ? graph_.node_op[node] : nullptr;
    const bool is_exempt =
        is_state[node] || has(v, kReadsVariable) || (op != nullptr && is_never_forced(op));
    if (has(v, kAble) && !is_exempt) class_[static_cast<size_t>(v)] = MP_OP_CLASS_ALLOW;
  }
}

/// Denies nodes whose values are too large or whose sums are too long.
void PrecisionAssignment::apply_limits() {
  const auto deny_node = [&](int32_t node, mp_autocast_reason_t reason) {
    for (int32_t v = vertices_.of_node(node); v < vertices_.end_of_node(node); v++) {
      class_[static_cast<size_t>(v)] = MP_OP_CLASS_DENY;
      give_reason(v, reason, -1);
    }
  };
  const int64_t depth_limit = policy_.config.depth_limit;
  if (depth_limit > 0 && graph_.node_depth != nullptr)
    for (int32_t i = 0; i < static_cast<int32_t>(graph_.num_nodes); i++)
      if (graph_.node_depth[i] > depth_limit) deny_node(i, MP_AUTOCAST_REASON_DEPTH);
  const float amax_limit = policy_.config.amax_limit;
  if (amax_limit > 0.0f && graph_.tensor_amax != nullptr) {
    // NaN means unknown and does not exceed the limit.
    const auto is_too_large = [&](int32_t t) {
      return is_float(graph_.tensor_dtype[t]) && graph_.tensor_amax[t] > amax_limit;
    };
    for_each_input(graph_, [&](int32_t node, int32_t, int32_t tensor) {
      if (is_too_large(tensor)) deny_node(node, MP_AUTOCAST_REASON_RANGE);
    });
    for (int32_t t = 0; t < static_cast<int32_t>(graph_.num_tensors); t++)
      if (graph_.tensor_producer[t] >= 0 && is_too_large(t))
        deny_node(graph_.tensor_producer[t], MP_AUTOCAST_REASON_RANGE);
  }
}

// ---------------------------------------------------------------------------- graph search

void PrecisionAssignment::give_reason(int32_t v, mp_autocast_reason_t reason, int32_t cause) {
  reasons_[static_cast<size_t>(v)] = static_cast<uint8_t>(reason);
  causes_[static_cast<size_t>(v)] = cause;
}

void PrecisionAssignment::make_low(int32_t v, mp_autocast_reason_t reason, int32_t cause) {
  if (has(v, kLow)) return;
  set(v, kLow);
  give_reason(v, reason, cause);
}

void PrecisionAssignment::make_fp32(int32_t v, mp_autocast_reason_t reason, int32_t cause) {
  clear(v, kLow);
  give_reason(v, reason, cause);
}

void PrecisionAssignment::clear_all(Bits bit) {
  for (int32_t v = 0; v < vertices_.count(); v++) clear(v, bit);
}

/// Breadth-first search from all roots.  Visits each vertex once, so enter() may change the result
/// of may_enter() for it.
template <class IsRoot, class MayEnter, class Enter>
void PrecisionAssignment::search(Direction direction, const IsRoot &is_root,
                                 const MayEnter &may_enter, const Enter &enter) {
  clear_all(kSeen);
  queue_.clear();
  const auto visit = [&](int32_t v, int32_t origin) {
    set(v, kSeen);
    origin_[static_cast<size_t>(v)] = origin;
    queue_.push_back(v);
    enter(v, vertices_.node(origin));
  };
  for (int32_t v = 0; v < vertices_.count(); v++)
    if (is_root(v)) visit(v, v);
  const auto expand = [&](int32_t from, const Adjacency &edges) {
    for (const int32_t to : edges.of(from))
      if (!has(to, kSeen) && may_enter(to)) visit(to, origin_[static_cast<size_t>(from)]);
  };
  for (size_t next = 0; next < queue_.size(); next++) {
    const int32_t from = queue_[next];
    if (direction != kBackward) expand(from, vertices_.forward);
    if (direction != kForward) expand(from, vertices_.backward);
  }
}

// ---------------------------------------------------------------------------- 1 to 5

void PrecisionAssignment::allow() {
  for (int32_t v = 0; v < vertices_.count(); v++) {
    const bool takes_precision =
        vertices_.is_eligible(v) && vertices_.slot(v) != MP_AUTOCAST_SLOT_FP32;
    if (!is(v, MP_OP_CLASS_ALLOW) || !has(v, kProcessable) || !takes_precision) continue;
    const bool is_patterned = reasons_[static_cast<size_t>(v)] == MP_AUTOCAST_REASON_PATTERN;
    make_low(v, is_patterned ? MP_AUTOCAST_REASON_PATTERN : MP_AUTOCAST_REASON_ALLOW_LIST, -1);
  }
}

void PrecisionAssignment::deny() {
  const auto is_deny = [&](int32_t v) { return is(v, MP_OP_CLASS_DENY); };
  for (int32_t v = 0; v < vertices_.count(); v++)
    if (is_deny(v)) set(v, kDenied);
  if (policy_.uses_torch_rules() || policy_.config.level == MP_AUTOCAST_LEVEL_FORCE_ALL) return;
  clear_all(kInside);
  search(
      kBackward, [&](int32_t v) { return is_deny(v) || is(v, MP_OP_CLASS_INFER); },
      [&](int32_t v) { return is(v, MP_OP_CLASS_CLEAR); },
      [&](int32_t v, int32_t) { set(v, kInside); });
  search(
      kForward, is_deny, [&](int32_t v) { return has(v, kInside); },
      [&](int32_t v, int32_t root) {
        if (has(v, kDenied)) return;
        set(v, kDenied);
        give_reason(v, MP_AUTOCAST_REASON_DENY_UPSTREAM, root);
      });
}

void PrecisionAssignment::between_allow() {
  const auto is_root = [&](int32_t v) { return is_allow_root(v); };
  clear_all(kInside);
  search(
      kForward, is_root,
      [&](int32_t v) {
        return (is(v, MP_OP_CLASS_INFER) || is(v, MP_OP_CLASS_CLEAR)) && can_be_low(v);
      },
      [&](int32_t v, int32_t) { set(v, kInside); });
  upstream_ = origin_;
  search(
      kBackward, is_root, [&](int32_t v) { return has(v, kInside); },
      [&](int32_t v, int32_t root) {
        if (vertices_.is_eligible(v)) make_low(v, MP_AUTOCAST_REASON_BETWEEN_ALLOW, root);
      });
}

void PrecisionAssignment::follow_allow() {
  clear_all(kInside);  // here: reads a denied vertex
  for (int32_t v = 0; v < vertices_.count(); v++)
    if (has(v, kDenied))
      for (const int32_t reader : vertices_.forward.of(v)) set(reader, kInside);
  search(
      kForward, [&](int32_t v) { return has(v, kLow); },
      [&](int32_t v) {
        return is(v, MP_OP_CLASS_INFER) && can_be_low(v) && !has(v, kInside) && !has(v, kLow);
      },
      [&](int32_t v, int32_t root) { make_low(v, MP_AUTOCAST_REASON_FOLLOWS_ALLOW, root); });
}

void PrecisionAssignment::clear_next_to_low() {
  search(
      kBoth, [&](int32_t v) { return has(v, kLow) && has(v, kProcessable); },
      [&](int32_t v) {
        return is(v, MP_OP_CLASS_CLEAR) && can_be_low(v) && !has(v, kReadsVariable) &&
               !has(v, kLow);
      },
      [&](int32_t v, int32_t root) { make_low(v, MP_AUTOCAST_REASON_CLEAR_NEXT_TO_LOW, root); });
}

// ---------------------------------------------------------------------------- torch

/// Rules of torch.amp for a complete graph: one forward pass instead of steps 2 to 5.
///
/// ALLOW vertices are 16-bit, DENY vertices are not.  Every other vertex runs in the type of its
/// inputs: 16-bit if all its floating-point inputs are.  This is the least fixed point, so a cycle
/// is 16-bit only if all inputs from outside the cycle are.
void PrecisionAssignment::propagate_forward() {
  const auto count = static_cast<size_t>(vertices_.count());
  std::vector<int32_t> fp32_inputs(count, 0);
  clear_all(kInside);  // here: has an input
  for (int32_t v = 0; v < vertices_.count(); v++) {
    const auto before = static_cast<int32_t>(vertices_.backward.of(v).size());
    fp32_inputs[static_cast<size_t>(v)] = before;
    if (before > 0) set(v, kInside);
  }
  for_each_input(graph_, [&](int32_t node, int32_t input, int32_t tensor) {
    const uint8_t dtype = graph_.tensor_dtype[tensor];
    if (!is_float(dtype)) return;
    const bool is_counted = dtype == MP_FP32 && graph_.tensor_producer[tensor] >= 0;
    if (is_counted) return;
    const uint8_t slot = vertices_.slots.of_input(input);
    for (int32_t v = vertices_.of_node(node); v < vertices_.end_of_node(node); v++) {
      if (vertices_.slot(v) != slot) continue;
      set(v, kInside);
      if (dtype != policy_.config.dtype_low) fp32_inputs[static_cast<size_t>(v)]++;
    }
  });

  const auto is_given_low = [&](int32_t v) {
    const bool takes_what_it_gets =
        is(v, MP_OP_CLASS_CLEAR) || is(v, MP_OP_CLASS_PROMOTE) || is(v, MP_OP_CLASS_INFER);
    return takes_what_it_gets && can_be_low(v) && has(v, kInside) &&
           fp32_inputs[static_cast<size_t>(v)] == 0;
  };
  queue_.clear();
  for (int32_t v = 0; v < vertices_.count(); v++) {
    if (!has(v, kLow) && is_given_low(v)) make_low(v, MP_AUTOCAST_REASON_FOLLOWS_ALLOW, -1);
    if (has(v, kLow) && has(v, kAble)) queue_.push_back(v);
  }
  for (size_t next = 0; next < queue_.size(); next++) {
    const int32_t from = queue_[next];
    for (const int32_t to : vertices_.forward.of(from)) {
      fp32_inputs[static_cast<size_t>(to)]--;
      if (has(to, kLow) || !is_given_low(to)) continue;
      make_low(to, MP_AUTOCAST_REASON_FOLLOWS_ALLOW, vertices_.node(from));
      queue_.push_back(to);
    }
  }
}

}  // namespace mp::autocast
