// Step 6 of assign_precision.cpp: vertices without a 16-bit kernel revert to fp32, clusters agree
// on a type, casts are absorbed.  Also returns the final reason of every node.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "graph/rewrite/assign_precision.h"

namespace mp::autocast {

namespace {

// ---------------------------------------------------------------------------- groups of clusters

enum ClusterKind : uint8_t { kContainer = 0, kLoop = 1 };

ClusterKind kind_of(const mp_autocast_graph_t &graph, uint32_t cluster) {
  return static_cast<ClusterKind>(graph.cluster_kind != nullptr ? graph.cluster_kind[cluster] : 0);
}

/// Union-find (Tarjan) with path halving.
class DisjointSets {
 public:
  explicit DisjointSets(uint32_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }
  uint32_t find(uint32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void merge(uint32_t a, uint32_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<uint32_t> parent_;
};

/// Returns the nodes of each group of clusters, ascending and without duplicates; clusters that
/// share a node are in one group.
/// @param kinds  kinds of the clusters: bitwise or of 1 << ClusterKind
std::vector<std::vector<int32_t>> groups_of(const mp_autocast_graph_t &graph, unsigned kinds) {
  std::vector<std::pair<int32_t, uint32_t>> clusters_of;  // node, cluster
  for (uint32_t c = 0; c < graph.num_clusters; c++) {
    if ((kinds & 1U << kind_of(graph, c)) == 0) continue;
    for (int32_t m = graph.member_offsets[c]; m < graph.member_offsets[c + 1]; m++)
      clusters_of.emplace_back(graph.member[m], c);
  }
  std::sort(clusters_of.begin(), clusters_of.end());
  DisjointSets sets(clusters_of.empty() ? 0 : graph.num_clusters);
  for (size_t i = 1; i < clusters_of.size(); i++)
    if (clusters_of[i].first == clusters_of[i - 1].first)
      sets.merge(clusters_of[i].second, clusters_of[i - 1].second);

  std::vector<std::vector<int32_t>> groups(clusters_of.empty() ? 0 : graph.num_clusters);
  for (const auto &[node, cluster] : clusters_of) {
    std::vector<int32_t> &members = groups[sets.find(cluster)];
    if (members.empty() || members.back() != node) members.push_back(node);
  }
  std::erase_if(groups, [](const auto &members) { return members.empty(); });
  return groups;
}

}  // namespace

// ---------------------------------------------------------------------------- kernels

void PrecisionAssignment::revert_unsupported() {
  for (int32_t v = 0; v < vertices_.count(); v++)
    if (has(v, kLow) && !has(v, kAble)) make_fp32(v, MP_AUTOCAST_REASON_NO_KERNEL, -1);
}

// ---------------------------------------------------------------------------- clusters

/// Unifies containers.  A member that is denied, not processable or without a 16-bit kernel denies
/// all members.  Otherwise, a low member makes all members low, regardless of their class: an empty
/// list has no float tensor but still has a type.
void PrecisionAssignment::containers() {
  const auto stays_fp32 = [&](int32_t node) {
    const int32_t v = vertices_.of_node(node);
    const bool has_no_kernel = (flags_of(graph_, node) & MP_NODE_FLAG_NO_LOW) != 0;
    return has(v, kDenied) || !has(v, kProcessable) || has_no_kernel;
  };
  for (const std::vector<int32_t> &members : groups_of(graph_, 1U << kContainer)) {
    const auto fp32 = std::find_if(members.begin(), members.end(), stays_fp32);
    const auto low = std::find_if(members.begin(), members.end(),
                                  [&](int32_t node) { return has(vertices_.of_node(node), kLow); });
    for (const int32_t node : members) {
      const int32_t v = vertices_.of_node(node);
      if (fp32 != members.end()) {
        if (!has(v, kDenied)) make_fp32(v, MP_AUTOCAST_REASON_CLUSTER_FP32, *fp32);
        set(v, kDenied);
      } else if (low != members.end()) {
        make_low(v, MP_AUTOCAST_REASON_CLUSTER_LOW, *low);
      }
    }
  }
}

/// Unifies loops: members that are not back edges decide.
void PrecisionAssignment::loops() {
  for (const std::vector<int32_t> &members : groups_of(graph_, 1U << kLoop)) {
    const auto is_back_edge = [&](int32_t node) {
      return (flags_of(graph_, node) & MP_NODE_FLAG_BACK_EDGE) != 0;
    };
    const auto stays_fp32 = [&](int32_t node) {
      const int32_t v = vertices_.of_node(node);
      return is_back_edge(node) ? !can_be_low(v) : !has(v, kLow);
    };
    const auto fp32 = std::find_if(members.begin(), members.end(), stays_fp32);
    const bool is_low =
        fp32 == members.end() && !std::all_of(members.begin(), members.end(), is_back_edge);
    const int32_t cause = is_low ? *std::find_if_not(members.begin(), members.end(), is_back_edge)
                          : fp32 != members.end() ? *fp32
                                                  : -1;
    for (const int32_t node : members) {
      const int32_t v = vertices_.of_node(node);
      if (is_low)
        make_low(v, MP_AUTOCAST_REASON_CLUSTER_LOW, cause);
      else if (has(v, kLow))
        make_fp32(v, MP_AUTOCAST_REASON_CLUSTER_FP32, cause);
    }
  }
}

/// Unifies a container and a loop that share a node and differ: all become fp32.
void PrecisionAssignment::unify_clusters() {
  for (const std::vector<int32_t> &members : groups_of(graph_, 1U << kContainer | 1U << kLoop)) {
    const auto fp32 = std::find_if_not(members.begin(), members.end(), [&](int32_t node) {
      return has(vertices_.of_node(node), kLow);
    });
    if (fp32 == members.end()) continue;
    for (const int32_t node : members) {
      const int32_t v = vertices_.of_node(node);
      if (has(v, kLow)) make_fp32(v, MP_AUTOCAST_REASON_CLUSTER_FP32, *fp32);
    }
  }
}

// ---------------------------------------------------------------------------- casts

/// Absorbs casts: a cast to fp32 whose readers are all low casts to low instead.
void PrecisionAssignment::absorb_casts() {
  const auto is_cast = [&](int32_t node) {
    return (flags_of(graph_, node) & MP_NODE_FLAG_CAST) != 0;
  };
  // Returns the vertex of a cast that writes tensor t, or -1 if there is none.
  const auto cast_of = [&](int32_t t) {
    const int32_t producer = graph_.tensor_producer[t];
    if (producer < 0 || !is_fp32(graph_, t) || !is_cast(producer)) return -1;
    return vertices_.find(producer, vertices_.slots.of_tensor(t));
  };
  if (graph_.node_flags == nullptr) return;

  std::vector<bool> is_clustered(graph_.num_nodes, false);
  const int32_t num_members =
      graph_.num_clusters > 0 ? graph_.member_offsets[graph_.num_clusters] : 0;
  for (int32_t m = 0; m < num_members; m++)
    is_clustered[static_cast<size_t>(graph_.member[m])] = true;

  std::vector<int32_t> fp32_readers(static_cast<size_t>(vertices_.count()), 0);
  clear_all(kInside);  // here: a cast that has readers
  for_each_input(graph_, [&](int32_t node, int32_t input, int32_t t) {
    const int32_t cast = cast_of(t);
    if (cast < 0) return;
    const int32_t reader = vertices_.find(node, vertices_.slots.of_input(input));
    set(cast, kInside);
    if (!has(reader, kLow)) fp32_readers[static_cast<size_t>(cast)]++;
  });
  if ((policy_.config.flags & MP_AUTOCAST_FLAG_KEEP_IO) != 0)
    for (int32_t t = 0; t < static_cast<int32_t>(graph_.num_tensors); t++)
      if (role_of(graph_, t) == MP_TENSOR_ROLE_OUTPUT && cast_of(t) >= 0)
        fp32_readers[static_cast<size_t>(cast_of(t))]++;

  const auto is_absorbed = [&](int32_t v) {
    return has(v, kInside) && fp32_readers[static_cast<size_t>(v)] == 0 && !has(v, kLow) &&
           has(v, kProcessable) && has(v, kAble) && !is(v, MP_OP_CLASS_DENY) &&
           !is_clustered[static_cast<size_t>(vertices_.node(v))];
  };
  queue_.clear();
  const auto absorb = [&](int32_t v) {
    make_low(v, MP_AUTOCAST_REASON_CAST_ABSORBED, vertices_.node(vertices_.forward.of(v).front()));
    queue_.push_back(v);
  };
  for (int32_t v = 0; v < vertices_.count(); v++)
    if (is_absorbed(v)) absorb(v);
  // If a cast reads on the slot that it writes, it may be the last fp32 reader of another cast.
  for (size_t next = 0; next < queue_.size(); next++) {
    const int32_t v = queue_[next];
    const int32_t node = vertices_.node(v);
    for (int32_t j = graph_.input_offsets[node]; j < graph_.input_offsets[node + 1]; j++) {
      if (graph_.input_tensor[j] < 0 || vertices_.slots.of_input(j) != vertices_.slot(v)) continue;
      const int32_t cast = cast_of(graph_.input_tensor[j]);
      if (cast < 0) continue;
      fp32_readers[static_cast<size_t>(cast)]--;
      if (is_absorbed(cast)) absorb(cast);
    }
  }
}

// ---------------------------------------------------------------------------- reasons

mp_autocast_reason_t PrecisionAssignment::reason(int32_t node) const {
  const int32_t v = vertices_.main_vertex(node);
  const auto given = static_cast<mp_autocast_reason_t>(reasons_[static_cast<size_t>(v)]);
  if (is_low(v)) return given;
  const uint16_t flags = flags_of(graph_, node);
  if (!vertices_.is_eligible(v)) return MP_AUTOCAST_REASON_NOT_FLOAT;
  if ((flags & MP_NODE_FLAG_OTHER_DEVICE) != 0) return MP_AUTOCAST_REASON_OTHER_DEVICE;
  if ((flags & MP_NODE_FLAG_KEEP_FP32) != 0) return MP_AUTOCAST_REASON_KEPT;
  if (given == MP_AUTOCAST_REASON_RANGE || given == MP_AUTOCAST_REASON_DEPTH) return given;
  if (is(v, MP_OP_CLASS_DENY)) return MP_AUTOCAST_REASON_DENY_LIST;
  if (is(v, MP_OP_CLASS_UNLISTED)) return MP_AUTOCAST_REASON_UNLISTED;
  if (!has(v, kAble)) return MP_AUTOCAST_REASON_NO_KERNEL;
  if (given == MP_AUTOCAST_REASON_DENY_UPSTREAM || given == MP_AUTOCAST_REASON_CLUSTER_FP32)
    return given;
  return MP_AUTOCAST_REASON_NO_ALLOW_NEARBY;
}

int32_t PrecisionAssignment::cause(int32_t node) const {
  const auto v = static_cast<size_t>(vertices_.main_vertex(node));
  return reason(node) == reasons_[v] ? causes_[v] : -1;
}

int32_t PrecisionAssignment::upstream(int32_t node) const {
  const auto v = static_cast<size_t>(vertices_.main_vertex(node));
  const int32_t before = upstream_.empty() ? -1 : upstream_[v];
  return before < 0 ? -1 : vertices_.node(before);
}

}  // namespace mp::autocast
