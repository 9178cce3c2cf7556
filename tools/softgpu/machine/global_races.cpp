#include "tools/softgpu/machine/global_races.h"

#include <algorithm>

#include "tools/softgpu/machine/block.h"

namespace softgpu {

uint32_t GlobalRaces::add_grid(std::shared_ptr<const Grid> grid) {
  const auto guard = lock();
  const uint32_t first = num_clusters_;
  num_clusters_ += static_cast<uint32_t>(volume(grid->num_blocks) / grid->blocks_per_cluster());
  grids_.push_back({first, std::move(grid)});
  return first;
}

const Grid &GlobalRaces::grid_of(uint32_t *cluster) const {
  const auto after = std::ranges::upper_bound(grids_, *cluster, {}, &Entry::first_cluster);
  *cluster -= after[-1].first_cluster;
  return *after[-1].grid;
}

}  // namespace softgpu
