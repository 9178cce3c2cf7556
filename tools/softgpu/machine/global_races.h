// SOFTGPU_RACECHECK: accesses to global memory by a sequence of grids that may overlap, and the
// clocks that clusters pass to each other.
//
// The clusters of these grids are numbered in order.  Accesses of grids that have ended before the
// first one are not recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tools/softgpu/machine/race_shadow.h"

namespace softgpu {

struct Grid;

/// Not thread-safe, except for lock.
class GlobalRaces {
 public:
  /// Returns a lock, which a thread may hold repeatedly.  Atomic operations hold it from the check
  /// to the access, so that both have the same order.
  std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }

  /// Returns the number of the grid's first cluster.
  uint32_t add_grid(std::shared_ptr<const Grid>);
  /// Returns the grid of a cluster, and replaces the number by the index in the grid.
  const Grid &grid_of(uint32_t *cluster) const;

  /// As in RaceShadow.
  template <class F>
  const RaceAccess *find_race(uint64_t address, uint64_t bytes, const RaceAccess &now,
                              F &&happened_before) {
    const RaceAccess *found = nullptr;
    for_each_page(address, bytes, [&](RaceShadow &page, uint32_t offset, uint32_t size) {
      if (found == nullptr) found = page.find_race(offset, size, now, happened_before);
    });
    return found;
  }
  template <class F>
  void add(uint64_t address, uint64_t bytes, const RaceAccess &now, F &&happened_before) {
    for_each_page(address, bytes, [&](RaceShadow &page, uint32_t offset, uint32_t size) {
      page.add(offset, size, now, happened_before);
    });
  }

  std::unordered_map<uint64_t, SharedClock> flags;  ///< released clocks by address

 private:
  static constexpr uint64_t kPageBytes = 4096;

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
  RaceShadow &page_at(uint64_t number) {
    if (last_page_ == nullptr || number != last_number_) {
      last_page_ = &pages_.try_emplace(number, uint32_t{kPageBytes}).first->second;
      last_number_ = number;
    }
    return *last_page_;
  }

  struct Entry {
    uint32_t first_cluster;
    std::shared_ptr<const Grid> grid;
  };

  std::recursive_mutex mutex_;
  std::vector<Entry> grids_;
  uint32_t num_clusters_ = 0;
  std::unordered_map<uint64_t, RaceShadow> pages_;
  RaceShadow *last_page_ = nullptr;
  uint64_t last_number_ = 0;
};

}  // namespace softgpu
