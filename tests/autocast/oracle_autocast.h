// Reference precisions of a graph, by the rules of mpcore/autocast.h and docs/autocast.md.  Each
// rule is a condition on one vertex, mostly the existence of a path, and starts its own search.
// Slow; shares no code with the library.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "test_graph.h"

namespace mptest::autocast {

struct OracleConfig {
  mp_dtype_t low;
  mp_autocast_level_t level;
  bool uses_torch_rules;  ///< MP_AUTOCAST_PRESET_PYTORCH
  bool keeps_io;          ///< MP_AUTOCAST_FLAG_KEEP_IO
};

class Oracle {
 public:
  /// @param classes  of the nodes, before the level
  Oracle(const Graph &graph, const std::vector<mp_op_class_t> &classes, OracleConfig config)
      : g_(graph), config_(config) {
    find_slots();
    find_neighbors();
    for (Vertex &v : all_) v.op_class = class_at_level(v, classes[v.node]);
    for (Vertex &v : all_) v.is_low = begins_low(v);
    for (Vertex &v : all_) v.propagates_deny = propagates_deny(v);
    for (Vertex &v : all_) v.is_denied = is_downstream_of_deny(v);
    containers();
    if (config_.uses_torch_rules) {
      make_low_until_none([&](const Vertex &v) { return is_given_low(v); });
    } else {
      make_low([&](const Vertex &v) { return is_between(v); });
      if (mp::has_fp32_range(config_.low)) make_low([&](const Vertex &v) { return follows(v); });
      make_low([&](const Vertex &v) { return is_connected(v); });
    }
    for (Vertex &v : all_) v.is_low = v.is_low && !has(v, MP_NODE_FLAG_NO_LOW) && v.is_eligible;
    containers();
    loops();
    make_low_until_none([&](const Vertex &v) { return is_absorbed(v); });
  }

  bool is_low(int32_t node, uint8_t slot) const {
    const auto found = vertex_.find({node, slot});
    return found != vertex_.end() && all_[found->second].is_low;
  }

 private:
  /// A node with one of its slots: slot 0, and each slot on which it has eligible tensors.
  struct Vertex {
    size_t node;
    uint8_t slot;
    bool is_eligible = false;
    bool is_low = false;
    bool is_denied = false;
    bool propagates_deny = false;  ///< INFER, or leads to one
    mp_op_class_t op_class = MP_OP_CLASS_UNLISTED;
    std::vector<size_t> before{}, after{};  ///< along MP_FP32 tensors and hidden edges
  };
  using Test = std::function<bool(const Vertex &)>;

  // ---------------------------------------------------------------------------- the graph

  void find_slots() {
    const auto add = [&](size_t node, uint8_t slot, bool is_eligible) {
      const auto [at, is_new] =
          vertex_.try_emplace({static_cast<int32_t>(node), slot}, all_.size());
      if (is_new) all_.push_back({node, slot});
      all_[at->second].is_eligible |= is_eligible;
    };
    for (size_t i = 0; i < g_.nodes.size(); i++) {
      add(i, 0, false);
      for (const Graph::Input &in : g_.nodes[i].inputs)
        if (in.tensor >= 0 && tensor(in).dtype == MP_FP32) add(i, in.slot, true);
    }
    for (const Graph::Tensor &t : g_.tensors)
      if (t.producer >= 0 && t.dtype == MP_FP32) add(static_cast<size_t>(t.producer), t.slot, true);
  }

  void find_neighbors() {
    const auto link = [&](size_t from, size_t to) {
      all_[from].after.push_back(to);
      all_[to].before.push_back(from);
    };
    for (size_t i = 0; i < g_.nodes.size(); i++)
      for (const Graph::Input &in : g_.nodes[i].inputs) {
        if (in.tensor < 0 || tensor(in).dtype != MP_FP32 || tensor(in).producer < 0) continue;
        link(vertex_.at({tensor(in).producer, tensor(in).slot}),
             vertex_.at({static_cast<int32_t>(i), in.slot}));
      }
    for (const Graph::Edge &e : g_.hidden) link(vertex_.at({e.src, 0}), vertex_.at({e.dst, 0}));
  }

  const Graph::Tensor &tensor(const Graph::Input &in) const {
    return g_.tensors[static_cast<size_t>(in.tensor)];
  }
  const Graph::Node &node(const Vertex &v) const { return g_.nodes[v.node]; }
  size_t index(const Vertex &v) const { return static_cast<size_t>(&v - all_.data()); }
  bool has(const Vertex &v, mp_node_flags_t flag) const { return (node(v).flags & flag) != 0; }
  bool is_processable(const Vertex &v) const {
    return !has(v, MP_NODE_FLAG_KEEP_FP32) && !has(v, MP_NODE_FLAG_OTHER_DEVICE);
  }
  /// MP_AUTOCAST_SLOT_FP32 is always fp32.
  static bool can_have_low_tensors(const Vertex &v) {
    return v.is_eligible && v.slot != MP_AUTOCAST_SLOT_FP32;
  }
  bool can_turn_low(const Vertex &v) const {
    return can_have_low_tensors(v) && is_processable(v) && !has(v, MP_NODE_FLAG_NO_LOW) &&
           !v.is_denied;
  }

  std::vector<const Vertex *> those(const Test &test) const {
    std::vector<const Vertex *> found;
    for (const Vertex &v : all_)
      if (test(v)) found.push_back(&v);
    return found;
  }

  enum Direction { kBefore = 1, kAfter = 2 };

  /// Returns whether a path leads from v to a vertex for which `ends` holds, through vertices for
  /// which `inside` holds.
  bool has_path(const Vertex &v, int directions, const Test &inside, const Test &ends) const {
    std::vector<bool> is_met(all_.size(), false);
    std::vector<size_t> open{index(v)};
    const auto meet = [&](const std::vector<size_t> &neighbors) {
      for (const size_t n : neighbors) {
        if (ends(all_[n])) return true;
        if (is_met[n] || !inside(all_[n])) continue;
        is_met[n] = true;
        open.push_back(n);
      }
      return false;
    };
    while (!open.empty()) {
      const Vertex &from = all_[open.back()];
      open.pop_back();
      if ((directions & kBefore) != 0 && meet(from.before)) return true;
      if ((directions & kAfter) != 0 && meet(from.after)) return true;
    }
    return false;
  }

  void make_low(const Test &rule) {
    for (const Vertex *v : those(rule)) all_[index(*v)].is_low = true;
  }
  void make_low_until_none(const Test &rule) {
    for (bool grows = true; grows;) {
      grows = false;
      for (Vertex &v : all_)
        if (!v.is_low && rule(v)) grows = v.is_low = true;
    }
  }

  // ---------------------------------------------------------------------------- classes

  mp_op_class_t class_at_level(const Vertex &v, mp_op_class_t c) const {
    if (c == MP_OP_CLASS_PROMOTE && !config_.uses_torch_rules) c = MP_OP_CLASS_INFER;
    if (config_.level == MP_AUTOCAST_LEVEL_INFER_AS_DENY && c == MP_OP_CLASS_INFER)
      return MP_OP_CLASS_DENY;
    if (config_.level == MP_AUTOCAST_LEVEL_TENSOR_CORES_ONLY && c != MP_OP_CLASS_ALLOW)
      return MP_OP_CLASS_UNLISTED;
    if (config_.level != MP_AUTOCAST_LEVEL_FORCE_ALL) return c;
    // All nodes that can, except constants, state and cross-entropies; nodes have no names here.
    const bool is_state =
        has(v, MP_NODE_FLAG_READS_VARIABLE) ||
        std::any_of(g_.tensors.begin(), g_.tensors.end(), [&](const Graph::Tensor &t) {
          return t.role == MP_TENSOR_ROLE_PARAMETER && t.producer == static_cast<int32_t>(v.node);
        });
    const bool can = can_have_low_tensors(v) && !has(v, MP_NODE_FLAG_NO_LOW);
    return can && !is_state ? MP_OP_CLASS_ALLOW : c;
  }

  static bool is_clear(const Vertex &v) { return v.op_class == MP_OP_CLASS_CLEAR; }
  static bool is_infer(const Vertex &v) { return v.op_class == MP_OP_CLASS_INFER; }
  static bool is_deny(const Vertex &v) { return v.op_class == MP_OP_CLASS_DENY; }

  // ---------------------------------------------------------------------------- precisions

  /// MP_OP_CLASS_ALLOW is always low precision.  Without a 16-bit kernel it is fp32, but spreads.
  bool begins_low(const Vertex &v) const {
    return v.op_class == MP_OP_CLASS_ALLOW && is_processable(v) && can_have_low_tensors(v);
  }

  /// MP_OP_CLASS_DENY is fp32, and propagates downstream through MP_OP_CLASS_INFER and vertices
  /// that lead to one.
  bool is_downstream_of_deny(const Vertex &v) const {
    if (is_deny(v)) return true;
    if (config_.uses_torch_rules || config_.level == MP_AUTOCAST_LEVEL_FORCE_ALL) return false;
    const Test inside = [](const Vertex &u) { return u.propagates_deny; };
    return v.propagates_deny && has_path(v, kBefore, inside, is_deny);
  }
  bool propagates_deny(const Vertex &v) const {
    return is_infer(v) || (is_clear(v) && has_path(v, kAfter, is_clear, [](const Vertex &u) {
                             return is_infer(u) || is_deny(u);
                           }));
  }

  /// MP_OP_CLASS_INFER or _CLEAR between two MP_OP_CLASS_ALLOW that are low precision.
  bool is_between(const Vertex &v) const {
    const Test inside = [&](const Vertex &u) {
      return (is_infer(u) || is_clear(u)) && can_turn_low(u);
    };
    const Test is_end = [](const Vertex &u) { return u.op_class == MP_OP_CLASS_ALLOW && u.is_low; };
    return inside(v) && has_path(v, kBefore, inside, is_end) && has_path(v, kAfter, inside, is_end);
  }

  /// Range of fp32: INFER after a low-precision vertex becomes low, unless it reads a denied one.
  bool follows(const Vertex &v) const {
    const Test inside = [&](const Vertex &u) {
      return is_infer(u) && can_turn_low(u) &&
             std::none_of(u.before.begin(), u.before.end(),
                          [&](size_t b) { return all_[b].is_denied; });
    };
    return inside(v) && has_path(v, kBefore, inside, [](const Vertex &u) { return u.is_low; });
  }

  /// CLEAR connected to a low-precision vertex through CLEAR becomes low, in both directions.
  bool is_connected(const Vertex &v) const {
    const Test inside = [&](const Vertex &u) {
      return is_clear(u) && can_turn_low(u) && !has(u, MP_NODE_FLAG_READS_VARIABLE);
    };
    return inside(v) && has_path(v, kBefore | kAfter, inside,
                                 [&](const Vertex &u) { return u.is_low && is_processable(u); });
  }

  /// MP_AUTOCAST_PRESET_PYTORCH: low if all floating-point inputs are and no list requires fp32.
  bool is_given_low(const Vertex &v) const {
    const bool is_held = is_deny(v) || v.op_class == MP_OP_CLASS_UNLISTED;
    if (is_held || v.op_class == MP_OP_CLASS_ALLOW || !can_turn_low(v)) return false;
    const auto writes_low = [&](int32_t producer, uint8_t slot) {
      const Vertex &u = all_[vertex_.at({producer, slot})];
      return u.is_low && !has(u, MP_NODE_FLAG_NO_LOW) && u.is_eligible;
    };
    int inputs = 0;
    for (const Graph::Input &in : node(v).inputs) {
      if (in.tensor < 0 || in.slot != v.slot || tensor(in).dtype == MP_DTYPE_NONE) continue;
      inputs++;
      const Graph::Tensor &t = tensor(in);
      const bool is_low = t.dtype == MP_FP32 ? t.producer >= 0 && writes_low(t.producer, t.slot)
                                             : t.dtype == config_.low;
      if (!is_low) return false;
    }
    for (const Graph::Edge &e : g_.hidden) {
      if (e.dst != static_cast<int32_t>(v.node) || v.slot != 0) continue;
      inputs++;
      if (!writes_low(e.src, 0)) return false;
    }
    return inputs > 0;
  }

  // ---------------------------------------------------------------------------- clusters, casts

  Vertex &slot_0(int32_t node) { return all_[vertex_.at({node, 0})]; }

  /// A member that is denied, must not be processed or has no 16-bit kernel denies all members;
  /// otherwise one low-precision member makes all low precision, of any class.
  void containers() {
    for (const Graph::Cluster &c : g_.clusters) {
      if (c.kind != 0) continue;
      bool is_denied = false, is_low = false;
      for (const int32_t m : c.members) {
        const Vertex &v = slot_0(m);
        is_denied |= v.is_denied || !is_processable(v) || has(v, MP_NODE_FLAG_NO_LOW);
        is_low |= v.is_low;
      }
      for (const int32_t m : c.members) {
        if (is_denied) slot_0(m).is_denied = true;
        if (is_denied || is_low) slot_0(m).is_low = !is_denied;
      }
    }
  }

  /// If all members without MP_NODE_FLAG_BACK_EDGE are low, and the others can be, all are low;
  /// otherwise none is.
  void loops() {
    for (const Graph::Cluster &c : g_.clusters) {
      if (c.kind != 1) continue;
      bool is_decided = false, is_low = true;
      for (const int32_t m : c.members) {
        const bool is_back_edge = has(slot_0(m), MP_NODE_FLAG_BACK_EDGE);
        is_decided |= !is_back_edge;
        is_low &= is_back_edge ? can_turn_low(slot_0(m)) : slot_0(m).is_low;
      }
      for (const int32_t m : c.members) slot_0(m).is_low = is_decided && is_low;
    }
  }

  /// A cast to fp32 of which all readers are low precision casts to 16 bits instead.
  bool is_absorbed(const Vertex &v) const {
    if (!has(v, MP_NODE_FLAG_CAST) || !is_processable(v) || is_deny(v)) return false;
    if (!can_have_low_tensors(v) || has(v, MP_NODE_FLAG_NO_LOW)) return false;
    const auto id = static_cast<int32_t>(v.node);
    for (const Graph::Cluster &c : g_.clusters)
      if (std::count(c.members.begin(), c.members.end(), id) > 0) return false;
    const auto is_mine = [&](const Graph::Tensor &t) {
      return t.producer == id && t.slot == v.slot && t.dtype == MP_FP32;
    };
    for (const Graph::Tensor &t : g_.tensors)
      if (config_.keeps_io && t.role == MP_TENSOR_ROLE_OUTPUT && is_mine(t)) return false;
    int readers = 0;
    for (size_t i = 0; i < g_.nodes.size(); i++)
      for (const Graph::Input &in : g_.nodes[i].inputs) {
        if (in.tensor < 0 || !is_mine(tensor(in))) continue;
        readers++;
        if (!is_low(static_cast<int32_t>(i), in.slot)) return false;
      }
    return readers > 0;
  }

  const Graph &g_;
  OracleConfig config_;
  std::vector<Vertex> all_;
  std::map<std::pair<int32_t, uint8_t>, size_t> vertex_;
};

}  // namespace mptest::autocast
