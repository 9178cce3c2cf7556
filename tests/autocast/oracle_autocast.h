// The colours once more, written from the words of docs/autocast.md: sets, and rules that are applied until none
// changes anything.  Slow, and without anything of the library's.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "test_graph.h"

namespace mptest::autocast {

struct OracleConfig {
  mp_dtype_t low;
  mp_autocast_level_t level;
  bool sweeps;    ///< MP_AUTOCAST_PYTORCH
  bool keeps_io;  ///< MP_AUTOCAST_KEEP_IO
};

class Oracle {
 public:
  using Vertex = std::pair<int32_t, uint8_t>;
  using Set = std::set<Vertex>;

  /// @param classes  of the nodes, before the level.
  Oracle(const Graph &graph, std::vector<mp_autocast_class_t> classes, OracleConfig config)
      : g_(graph), class_(std::move(classes)), config_(config) {
    find_vertices();
    apply_level();
    for (const Vertex &v : vertices_)
      if (is(v, MP_CAST_ALLOW) && processable(v) && part_.count(v)) low_.insert(v);
    deny();
    containers();
    if (config_.sweeps) {
      grow([&](const Vertex &v) { return is_given_low(v); });
    } else {
      between();
      if (config_.low == MP_BF16) grow([&](const Vertex &v) { return follows(v); });
      beside();
    }
    for (const Vertex &v : Set(low_))
      if (!able(v)) low_.erase(v);
    containers();
    loops();
    absorb();
  }

  bool is_low(int32_t node, uint8_t slot) const { return low_.count({node, slot}) > 0; }

 private:
  const Graph::Node &node(const Vertex &v) const { return g_.nodes[static_cast<size_t>(v.first)]; }
  const Graph::Tensor &tensor(int32_t t) const { return g_.tensors[static_cast<size_t>(t)]; }
  bool has(const Vertex &v, mp_node_flags_t flag) const { return (node(v).flags & flag) != 0; }
  bool is(const Vertex &v, mp_autocast_class_t c) const {
    const auto forced = forced_.count(v) ? MP_CAST_ALLOW : class_[static_cast<size_t>(v.first)];
    return forced == c;
  }
  bool processable(const Vertex &v) const {
    return !has(v, MP_NODE_KEEP) && !has(v, MP_NODE_ELSEWHERE);
  }
  bool able(const Vertex &v) const {
    return part_.count(v) && !has(v, MP_NODE_NO_LOW) && v.second != MP_SLOT_FP32;
  }
  bool free(const Vertex &v) const { return processable(v) && able(v) && !denied_.count(v); }

  void find_vertices() {
    for (int32_t i = 0; i < static_cast<int32_t>(g_.nodes.size()); i++) {
      vertices_.insert({i, 0});
      for (const Graph::Input &in : g_.nodes[static_cast<size_t>(i)].inputs) {
        if (in.tensor < 0 || tensor(in.tensor).dtype != MP_FP32) continue;
        part_.insert({i, in.slot});
        const Graph::Tensor &t = tensor(in.tensor);
        if (t.producer >= 0) edges_.insert({{t.producer, t.slot}, {i, in.slot}});
      }
    }
    for (const Graph::Tensor &t : g_.tensors)
      if (t.producer >= 0 && t.dtype == MP_FP32) part_.insert({t.producer, t.slot});
    for (const Graph::Edge &e : g_.hidden) edges_.insert({{e.src, 0}, {e.dst, 0}});
    vertices_.insert(part_.begin(), part_.end());
  }

  void apply_level() {
    for (mp_autocast_class_t &c : class_) {
      if (c == MP_CAST_PROMOTE && !config_.sweeps) c = MP_CAST_INFER;
      if (config_.level == MP_AUTOCAST_INFER_AS_DENY && c == MP_CAST_INFER) c = MP_CAST_DENY;
      if (config_.level == MP_AUTOCAST_TENSOR_CORES_ONLY && c != MP_CAST_ALLOW)
        c = MP_CAST_UNLISTED;
    }
    if (config_.level != MP_AUTOCAST_FORCE_ALL) return;
    for (const Vertex &v : vertices_)
      if (able(v) && !has(v, MP_NODE_READS_VARIABLE)) forced_.insert(v);
    for (const Graph::Tensor &t : g_.tensors)  // what writes a parameter is state
      if (t.role == MP_TENSOR_PARAMETER)
        for (int slot = 0; slot < 256; slot++)
          forced_.erase({t.producer, static_cast<uint8_t>(slot)});
  }

  using Test = std::function<bool(const Vertex &)>;

  /// What is reached from `roots` through vertices for which `inside` holds, the roots among it.
  Set reached(const Set &roots, bool forward, bool backward, const Test &inside) const {
    Set found = roots;
    for (bool grows = true; grows;) {
      grows = false;
      for (const auto &[from, to] : edges_) {
        if (forward && found.count(from) && inside(to)) grows |= found.insert(to).second;
        if (backward && found.count(to) && inside(from)) grows |= found.insert(from).second;
      }
    }
    return found;
  }

  Set all(const Test &test) const {
    Set found;
    std::copy_if(vertices_.begin(), vertices_.end(), std::inserter(found, found.end()), test);
    return found;
  }

  /// Makes low what `rule` allows, until nothing changes.
  void grow(const Test &rule) {
    for (bool grows = true; grows;) {
      grows = false;
      for (const Vertex &v : vertices_)
        if (!low_.count(v) && rule(v)) grows |= low_.insert(v).second;
    }
  }

  void deny() {
    const Test is_deny = [&](const Vertex &v) { return is(v, MP_CAST_DENY); };
    const Set roots = all(is_deny);
    denied_ = roots;
    if (config_.sweeps || config_.level == MP_AUTOCAST_FORCE_ALL) return;
    const Set leads_on =
        reached(all([&](const Vertex &v) { return is_deny(v) || is(v, MP_CAST_INFER); }), false,
                true, [&](const Vertex &v) { return is(v, MP_CAST_CLEAR); });
    denied_ = reached(roots, true, false, [&](const Vertex &v) { return leads_on.count(v) > 0; });
  }

  void between() {
    const Set roots = all([&](const Vertex &v) {
      return is(v, MP_CAST_ALLOW) && processable(v) && !denied_.count(v);
    });
    const Set behind = reached(roots, true, false, [&](const Vertex &v) {
      return (is(v, MP_CAST_CLEAR) || is(v, MP_CAST_INFER)) && free(v);
    });
    const Set met =
        reached(roots, false, true, [&](const Vertex &v) { return behind.count(v) > 0; });
    for (const Vertex &v : met)
      if (part_.count(v)) low_.insert(v);
  }

  bool follows(const Vertex &v) const {
    if (!is(v, MP_CAST_INFER) || !free(v)) return false;
    bool any_low = false, any_denied = false;
    for (const auto &[from, to] : edges_) {
      if (to != v) continue;
      any_low |= low_.count(from) > 0;
      any_denied |= denied_.count(from) > 0;
    }
    return any_low && !any_denied;
  }

  void beside() {
    const Set roots = all([&](const Vertex &v) { return low_.count(v) && processable(v); });
    const Set met = reached(roots, true, true, [&](const Vertex &v) {
      return is(v, MP_CAST_CLEAR) && free(v) && !has(v, MP_NODE_READS_VARIABLE);
    });
    low_.insert(met.begin(), met.end());
  }

  bool is_given_low(const Vertex &v) const {
    const bool takes = is(v, MP_CAST_CLEAR) || is(v, MP_CAST_PROMOTE) || is(v, MP_CAST_INFER);
    if (!takes || !free(v)) return false;
    int inputs = 0;
    for (const Graph::Input &in : node(v).inputs) {
      if (in.tensor < 0 || in.slot != v.second) continue;
      const Graph::Tensor &t = tensor(in.tensor);
      if (t.dtype == MP_DTYPE_NONE) continue;
      inputs++;
      const Vertex from{t.producer, t.slot};
      const bool is_low = t.dtype == config_.low ||
                          (t.dtype == MP_FP32 && t.producer >= 0 && low_.count(from) && able(from));
      if (!is_low) return false;
    }
    for (const Graph::Edge &e : g_.hidden) {
      if (e.dst != v.first || v.second != 0) continue;
      inputs++;
      if (!low_.count({e.src, 0}) || !able({e.src, 0})) return false;
    }
    return inputs > 0;
  }

  void containers() {
    for (const Graph::Cluster &c : g_.clusters) {
      if (c.kind != 0) continue;
      bool any_fp32 = false, any_low = false;
      for (const int32_t m : c.members) {
        const Vertex v{m, 0};
        any_fp32 |= denied_.count(v) || !processable(v) || has(v, MP_NODE_NO_LOW);
        any_low |= low_.count(v) > 0;
      }
      for (const int32_t m : c.members) {
        if (any_fp32) {
          denied_.insert({m, 0});
          low_.erase({m, 0});
        } else if (any_low) {
          low_.insert({m, 0});
        }
      }
    }
  }

  void loops() {
    for (const Graph::Cluster &c : g_.clusters) {
      if (c.kind != 1) continue;
      bool decided = false, all_low = true;
      for (const int32_t m : c.members) {
        const Vertex v{m, 0};
        if (has(v, MP_NODE_BACK_EDGE)) {
          all_low &= free(v);
        } else {
          decided = true;
          all_low &= low_.count(v) > 0;
        }
      }
      for (const int32_t m : c.members) {
        if (decided && all_low)
          low_.insert({m, 0});
        else
          low_.erase({m, 0});
      }
    }
  }

  void absorb() {
    const auto is_clustered = [&](int32_t i) {
      return std::any_of(g_.clusters.begin(), g_.clusters.end(), [&](const Graph::Cluster &c) {
        return std::count(c.members.begin(), c.members.end(), i) > 0;
      });
    };
    grow([&](const Vertex &v) {
      if (!has(v, MP_NODE_CAST) || !processable(v) || !able(v) || is(v, MP_CAST_DENY)) return false;
      if (is_clustered(v.first)) return false;
      int readers = 0;
      for (const Graph::Tensor &t : g_.tensors)
        if (config_.keeps_io && t.role == MP_TENSOR_OUTPUT && t.producer == v.first &&
            t.slot == v.second && t.dtype == MP_FP32)
          return false;
      for (int32_t i = 0; i < static_cast<int32_t>(g_.nodes.size()); i++)
        for (const Graph::Input &in : g_.nodes[static_cast<size_t>(i)].inputs) {
          if (in.tensor < 0) continue;
          const Graph::Tensor &t = tensor(in.tensor);
          if (t.producer != v.first || t.slot != v.second || t.dtype != MP_FP32) continue;
          readers++;
          if (!low_.count({i, in.slot})) return false;
        }
      return readers > 0;
    });
  }

  const Graph &g_;
  std::vector<mp_autocast_class_t> class_;
  OracleConfig config_;
  Set vertices_, part_, low_, denied_, forced_;
  std::set<std::pair<Vertex, Vertex>> edges_;
};

}  // namespace mptest::autocast
