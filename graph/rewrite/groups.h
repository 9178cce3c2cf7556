// Groups of clusters that share nodes and therefore have one type.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mpcore.h"

namespace mp::autocast {

enum ClusterKind : uint8_t { kContainer = 0, kLoop = 1 };

/// Groups of the clusters of some kinds; clusters that share a node are in one group.
class Groups {
 public:
  /// @param kinds  bitwise or of 1 << ClusterKind
  Groups(const mp_autocast_graph_t &graph, unsigned kinds);

  size_t count() const { return first_.size() - 1; }
  /// Returns the nodes of a group, in ascending order and without duplicates.
  std::span<const int32_t> members(size_t group) const {
    return {members_.data() + first_[group], first_[group + 1] - first_[group]};
  }

 private:
  std::vector<size_t> first_;  ///< groups + 1 entries
  std::vector<int32_t> members_;
};

}  // namespace mp::autocast
