#include "softgpu/machine/launch.h"

#include <algorithm>
#include <numeric>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/global_races.h"
#include "softgpu/machine/occupancy.h"
#include "softgpu/machine/race_check.h"
#include "softgpu/options.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

constexpr uint64_t kMaxShuffled = 1 << 24;  // in clusters; larger grids run in order
// Argument of random_seed; differs from the indices of partitions.
constexpr uint64_t kParkingGenerator = 1 << 16;

uint64_t count_clusters(const Grid &grid) {
  for (size_t i = 0; i < 3; i++) {
    const uint32_t n = grid.num_blocks[i], size = grid.cluster[i];
    if (size == 0 || n % size != 0)
      fault(format("%u blocks are not a multiple of the cluster size, %u", n, size));
  }
  return volume(grid.num_blocks) / grid.blocks_per_cluster();
}

using Clock = std::chrono::steady_clock;

/// Returns whether blocks pause in launch_dependents: always, or in half of the launches if seeded.
bool blocks_park(const Grid &grid) {
  if (!grid.begin_dependent) return false;
  return !options().is_random() || random_seed(grid, kParkingGenerator) % 2 == 0;
}

std::shared_ptr<GridState> make_state(const Grid &grid, uint64_t num_clusters) {
  auto state = std::make_shared<GridState>();
  state->num_blocks_holding = volume(grid.num_blocks);
  state->num_clusters_left = num_clusters;
  state->parks = blocks_park(grid);
  return state;
}

}  // namespace

Launch::Launch(std::shared_ptr<const Grid> grid, int num_shares, GlobalRaces *races,
               std::shared_ptr<const GridState> before)
    : grid_(std::move(grid)),
      num_clusters_(count_clusters(*grid_)),
      capacity_(clusters_per_device(*grid_)),
      races_(races),
      first_cluster_(races != nullptr ? races->add_grid(grid_) : 0),
      num_shares_(num_shares),
      begin_(Clock::now()),
      state_(make_state(*grid_, num_clusters_)),
      before_(std::move(before)),
      maker_(*grid_) {
  if (!options().is_random() || num_clusters_ > kMaxShuffled) return;
  order_.resize(num_clusters_);
  std::iota(order_.begin(), order_.end(), 0u);
  std::mt19937_64 random(random_seed(*grid_, static_cast<uint64_t>(num_shares)));
  std::shuffle(order_.begin(), order_.end(), random);
}

Launch::~Launch() {
  Totals &totals = *grid_->program->totals;
  const std::lock_guard lock(totals.mutex);
  totals.tally.num_launches++;
  totals.tally.num_blocks += volume(grid_->num_blocks);
  totals.seconds += std::chrono::duration<double>(Clock::now() - begin_).count();
}

uint64_t random_seed(const Grid &grid, uint64_t generator) {
  std::seed_seq mixed{options().seed, options().seed >> 32, grid.id, grid.id >> 32, generator};
  uint32_t words[2];
  mixed.generate(words, words + 2);
  return uint64_t{words[0]} << 32 | words[1];
}

bool Launch::take_cluster(uint64_t *index) {
  const std::lock_guard lock(mutex_);
  if (next_cluster_ == num_clusters_ || num_running_ == capacity_) return false;
  *index = order_.empty() ? next_cluster_ : order_[next_cluster_];
  next_cluster_++;
  num_running_++;
  return true;
}

void Launch::end_cluster() {
  state_->num_clusters_left--;
  const std::lock_guard lock(mutex_);
  num_running_--;
}

std::unique_ptr<Cluster> Launch::make_cluster(Worker &worker, KernelCounters &tally,
                                              uint64_t index) const {
  std::unique_ptr<Cluster> cluster = maker_.make(worker, tally, index);
  cluster->state = state_.get();
  cluster->prerequisite = before_.get();
  if (races_ != nullptr)
    cluster->races = std::make_shared<RaceCheck>(*cluster, *races_, first_cluster_);
  return cluster;
}

void Launch::recycle(Worker &worker, Cluster &cluster) const {
  maker_.recycle(worker, cluster);
}

bool Launch::note_instructions(uint64_t num_instructions) {
  const uint64_t limit = options().max_instructions;
  const uint64_t sum = num_instructions_ += num_instructions;
  return limit == 0 || sum <= limit;
}

}  // namespace softgpu
