// Clusters that share a node have one colour, so they are one group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mpcore.h"

namespace mp::autocast {

enum ClusterKind : uint8_t { kContainer = 0, kLoop = 1 };

/// Clusters of some kinds, those that share a node taken together.
class Groups {
 public:
  /// @param kinds  1 << ClusterKind, or-ed.
  Groups(const mp_autocast_graph_t &graph, unsigned kinds);

  size_t count() const { return first_.size() - 1; }
  /// Nodes, each once, in ascending order.
  std::span<const int32_t> members(size_t group) const {
    return {members_.data() + first_[group], first_[group + 1] - first_[group]};
  }

 private:
  std::vector<size_t> first_;  ///< groups + 1
  std::vector<int32_t> members_;
};

}  // namespace mp::autocast
