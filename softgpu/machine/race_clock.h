// Vector clocks, for SOFTGPU_RACECHECK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
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
  void join(const ClusterRanges &other) {
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
/// Returns the union of sets, or the component-wise maximum of clocks.
template <class T>
std::shared_ptr<const T> join(const std::shared_ptr<const T> &x,
                              const std::shared_ptr<const T> &y) {
  if (x == y || !y) return x;
  if (!x) return y;
  auto both = std::make_shared<T>(*x);
  both->join(*y);
  return both;
}

class RaceClock;
/// Immutable clock that threads share after a barrier; null is the empty clock.
using SharedClock = std::shared_ptr<const RaceClock>;

/// Vector clock of a cluster: for each component, the time up to which its accesses have happened
/// before.  Also contains the clocks of other clusters, for global memory.
class RaceClock {
 public:
  uint32_t operator[](size_t component) const {
    return component < times_.size() ? times_[component] : 0;
  }
  void learn(size_t component, uint32_t time);
  /// Sets each component to the maximum.
  void join(const RaceClock &other);
  /// Sets each component of the own cluster to the minimum, and removes other clusters.
  void meet(const RaceClock &other);

  /// Returns the components of another cluster.
  SharedClock of_cluster(uint32_t cluster) const;
  /// Returns the clock as it is passed to other clusters: without `fenced` and `at_fence`, because
  /// a fence orders only relaxed operations of its own block (PTX ISA, Release and Acquire
  /// Patterns).
  RaceClock exported_by(uint32_t cluster) const;
  /// Returns an exported clock as seen by a cluster.
  RaceClock imported_by(uint32_t cluster) const;

  /// Accesses that a fence, or a fence.proxy.async for global memory, follows.
  SharedClock fenced, proxy_fenced;
  /// Clocks that relaxed operations have acquired, for the next fence.
  SharedClock at_fence;
  SharedClusters ended;  ///< clusters of previous grids that have ended before

 private:
  struct Other {
    uint32_t cluster;
    SharedClock clock;
  };
  using Others = std::vector<Other>;  ///< sorted by cluster
  static std::shared_ptr<const Others> join(const std::shared_ptr<const Others> &,
                                            const std::shared_ptr<const Others> &);

  std::vector<uint32_t> times_;
  std::shared_ptr<const Others> others_;
};

inline SharedClock share(RaceClock clock) {
  return std::make_shared<const RaceClock>(std::move(clock));
}
/// Returns the component-wise minimum.
SharedClock meet(const SharedClock &, const SharedClock &);

}  // namespace softgpu
