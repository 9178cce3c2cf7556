// Set of clusters of a sequence of grids, for SOFTGPU_RACECHECK.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace softgpu {

class ClusterRanges {
 public:
  bool contains(uint32_t cluster) const {
    for (const Range &range : ranges_)
      if (cluster < range.end) return cluster >= range.begin;
    return false;
  }
  /// Adds the clusters from `begin` to `end` - 1.
  void add(uint32_t begin, uint32_t end);
  void add(const ClusterRanges &other) {
    for (const Range &range : other.ranges_) add(range.begin, range.end);
  }

 private:
  struct Range {
    uint32_t begin, end;
  };
  std::vector<Range> ranges_;  ///< sorted, with gaps in between
};

/// Immutable set that the threads of a grid share; null is the empty set.
using SharedClusters = std::shared_ptr<const ClusterRanges>;

inline bool contains(const SharedClusters &clusters, uint32_t cluster) {
  return clusters && clusters->contains(cluster);
}
/// Returns the union.
SharedClusters join(const SharedClusters &, const SharedClusters &);

}  // namespace softgpu
