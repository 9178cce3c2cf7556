#include "graph/rewrite/groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mp::autocast {

namespace {

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

}  // namespace

Groups::Groups(const mp_autocast_graph_t &graph, unsigned kinds) {
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

  std::vector<std::pair<uint32_t, int32_t>> members;  // group, node
  members.reserve(clusters_of.size());
  for (const auto &[node, cluster] : clusters_of) members.emplace_back(sets.find(cluster), node);
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());

  members_.reserve(members.size());
  for (size_t i = 0; i < members.size(); i++) {
    if (i == 0 || members[i].first != members[i - 1].first) first_.push_back(i);
    members_.push_back(members[i].second);
  }
  first_.push_back(members.size());
}

}  // namespace mp::autocast
