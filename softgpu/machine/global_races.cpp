#include "softgpu/machine/global_races.h"

#include <algorithm>
#include <utility>

#include "softgpu/machine/block.h"

namespace softgpu {

uint32_t GlobalRaces::add_grid(std::shared_ptr<const Grid> grid) {
  const auto guard = lock();
  Entry entry{.first_cluster = num_clusters_, .grid = std::move(grid)};
  // The grid begins when each block of the previous grid has allowed it.
  if (!grids_.empty()) {
    const Entry &previous = grids_.back();
    entry.ended_before = previous.allows_before_wait ? previous.ended_before : previous.waited_for;
  }
  num_clusters_ +=
      static_cast<uint32_t>(volume(entry.grid->num_blocks) / entry.grid->blocks_per_cluster());
  grids_.push_back(std::move(entry));
  return grids_.back().first_cluster;
}

void GlobalRaces::note_ended(size_t num_ended) {
  if (num_ended < 2) return;
  const auto guard = lock();
  const uint32_t first_kept = grids_[num_ended - 1].first_cluster;
  std::erase_if(pages_, [&](const auto &page) { return page.second.newest_cluster < first_kept; });
  last_page_ = nullptr;
}

size_t GlobalRaces::index_of(uint32_t cluster) const {
  const auto after = std::ranges::upper_bound(grids_, cluster, {}, &Entry::first_cluster);
  return static_cast<size_t>(after - grids_.begin()) - 1;
}

const Grid &GlobalRaces::grid_of(uint32_t *cluster) const {
  const Entry &entry = grids_[index_of(*cluster)];
  *cluster -= entry.first_cluster;
  return *entry.grid;
}

SharedClusters GlobalRaces::ended_before(uint32_t cluster) {
  const auto guard = lock();
  return grids_[index_of(cluster)].ended_before;
}

SharedClusters GlobalRaces::wait_for_previous(uint32_t cluster) {
  const auto guard = lock();
  const size_t index = index_of(cluster);
  Entry &entry = grids_[index];
  if (entry.waited_for) return entry.waited_for;
  ClusterRanges ended;
  if (index > 0) {
    const Entry &previous = grids_[index - 1];
    const SharedClusters &earlier =
        previous.waited_for ? previous.waited_for : previous.ended_before;
    if (earlier) ended = *earlier;
    ended.add(previous.first_cluster, entry.first_cluster);
  }
  entry.waited_for = std::make_shared<const ClusterRanges>(std::move(ended));
  return entry.waited_for;
}

void GlobalRaces::allow_dependents(uint32_t cluster, bool has_waited) {
  const auto guard = lock();
  grids_[index_of(cluster)].allows_before_wait |= !has_waited;
}

}  // namespace softgpu
