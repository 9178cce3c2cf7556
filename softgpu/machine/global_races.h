// SOFTGPU_RACECHECK: accesses to global memory by a sequence of grids that may overlap, and the
// clocks that clusters pass to each other.
//
// The clusters of these grids are numbered in order.  Accesses of grids that have ended before the
// first one are not recorded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "softgpu/machine/race_shadow.h"

namespace softgpu {

struct Grid;

/// State that all clusters share.  find_race, add, grid_of and flags require the lock; the other
/// functions take it themselves.
class GlobalRaces {
 public:
  /// Returns a lock, which a thread may hold repeatedly.  Atomic operations hold it from the check
  /// to the access, so that both have the same order.
  std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }

  /// Returns the number of the grid's first cluster.
  uint32_t add_grid(std::shared_ptr<const Grid>);
  /// Bounds the memory after the first `num_ended` grids have ended: removes the pages whose
  /// accesses are all by these grids, except for the last of them.
  ///
  /// No race is missed if each grid waits before it allows dependents: a grid then begins after the
  /// end of all grids before the previous one.
  void note_ended(size_t num_ended);
  /// Returns the grid of a cluster, and replaces the number by the index in the grid.
  const Grid &grid_of(uint32_t *cluster) const;

  // Programmatic dependent launch.  `cluster` identifies a grid.

  /// Returns the clusters that had ended before a grid began.
  SharedClusters ended_before(uint32_t cluster);
  /// Records that griddepcontrol.wait returns, and returns the clusters that have ended before.
  ///
  /// The instruction waits for the end of the previous grid.  Earlier grids have ended as well if
  /// any thread of the previous grid has waited for them.
  SharedClusters wait_for_previous(uint32_t cluster);
  /// Records that a block has allowed dependents.
  /// @param has_waited  whether one of its threads has waited before
  void allow_dependents(uint32_t cluster, bool has_waited);

  /// As in RaceShadow.
  template <class F>
  const RaceAccess *find_race(uint64_t address, uint64_t bytes, const RaceAccess &now,
                              F &&happened_before) {
    const RaceAccess *found = nullptr;
    for_each_page(address, bytes, [&](Page &page, uint32_t offset, uint32_t size) {
      if (found == nullptr) found = page.shadow.find_race(offset, size, now, happened_before);
    });
    return found;
  }
  template <class F>
  void add(uint64_t address, uint64_t bytes, const RaceAccess &now, F &&happened_before) {
    for_each_page(address, bytes, [&](Page &page, uint32_t offset, uint32_t size) {
      page.newest_cluster = std::max(page.newest_cluster, now.cluster);
      page.shadow.add(offset, size, now, happened_before);
    });
  }

  std::unordered_map<uint64_t, SharedClock> flags;  ///< released clocks by address

 private:
  static constexpr uint64_t kPageBytes = 4096;
  struct Page {
    RaceShadow shadow{uint32_t{kPageBytes}};
    uint32_t newest_cluster = 0;  ///< maximum of the accesses
  };

  template <class F>
  void for_each_page(uint64_t address, uint64_t bytes, F &&f) {
    while (bytes != 0) {
      const auto offset = static_cast<uint32_t>(address % kPageBytes);
      const auto size = static_cast<uint32_t>(std::min(bytes, kPageBytes - offset));
      f(page_at(address / kPageBytes), offset, size);
      address += size;
      bytes -= size;
    }
  }
  Page &page_at(uint64_t number) {
    if (last_page_ == nullptr || number != last_number_) {
      last_page_ = &pages_[number];
      last_number_ = number;
    }
    return *last_page_;
  }

  struct Entry {
    uint32_t first_cluster;
    std::shared_ptr<const Grid> grid;
    SharedClusters ended_before = nullptr;  ///< clusters that had ended before the grid began
    SharedClusters waited_for = nullptr;    ///< result of wait_for_previous; null: not called
    bool allows_before_wait = false;  ///< a block has allowed dependents, or exited, without a wait
  };
  size_t index_of(uint32_t cluster) const;

  std::recursive_mutex mutex_;
  std::vector<Entry> grids_;
  uint32_t num_clusters_ = 0;
  std::unordered_map<uint64_t, Page> pages_;
  Page *last_page_ = nullptr;
  uint64_t last_number_ = 0;
};

}  // namespace softgpu
