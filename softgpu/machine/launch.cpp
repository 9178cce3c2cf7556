#include "softgpu/machine/launch.h"

#include <algorithm>
#include <numeric>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/global_races.h"
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

bool Launch::note_instructions(uint64_t num_instructions) {
  const uint64_t limit = options().max_instructions;
  const uint64_t sum = num_instructions_ += num_instructions;
  return limit == 0 || sum <= limit;
}

// ---- occupancy

namespace {

constexpr int kRegisterUnit = 8;

}  // namespace

int initial_registers(const Program &program) {
  if (program.max_registers != 0) return static_cast<int>(program.max_registers);
  const uint32_t threads = program.max_threads != 0 ? program.max_threads : 1024;
  const auto resident = static_cast<int>(threads * std::max(1u, program.min_blocks));
  const int registers = kRegistersPerSm / resident;
  return std::min(registers / kRegisterUnit * kRegisterUnit, kRegistersPerThread);
}

int register_bound(const Program &program) {
  const bool is_told =
      program.max_registers != 0 || (program.max_threads != 0 && program.min_blocks != 0);
  return is_told ? initial_registers(program) : 0;
}

int blocks_per_sm(const Program &program, int num_threads, uint64_t smem) {
  const Architecture &limits = architecture();
  const int threads = (num_threads + kWarpSize - 1) / kWarpSize * kWarpSize;
  int blocks = std::min(limits.blocks_per_sm, limits.threads_per_sm / threads);
  if (const int registers = register_bound(program); registers != 0)
    blocks = std::min(blocks, kRegistersPerSm / (registers * threads));
  const uint64_t smem_of_block = smem + static_cast<uint64_t>(limits.reserved_smem);
  if (smem_of_block != 0)
    blocks = static_cast<int>(std::min<uint64_t>(
        static_cast<uint64_t>(blocks), static_cast<uint64_t>(limits.smem_per_sm) / smem_of_block));
  return blocks;
}

uint64_t clusters_per_device(const Grid &grid) {
  const int blocks =
      blocks_per_sm(*grid.program, static_cast<int>(grid.threads_per_block()), smem_of(grid)) *
      options().num_sms;
  return std::max<uint64_t>(1, static_cast<uint64_t>(blocks) / grid.blocks_per_cluster());
}

// ---- deadlocks

namespace {

constexpr int kMaxLines = 60;
constexpr size_t kMaxStatement = 100;  // in characters

std::string describe_group(const Warp &warp, const LaneGroup &group) {
  const Program &program = *warp.program;
  const Dim3 &block = warp.block->id;
  std::string line = format("\n    block (%u, %u, %u) warp %d lanes %08x", block[0], block[1],
                            block[2], warp.index, group.lanes);
  if (group.pc >= program.code.size()) return line + ": at the end";
  const SourceLine &source = program.source[group.pc];
  return line +
         format(" %s%s:%u: ", group.waits ? "waits at " : "at ", program.file.c_str(),
                source.line) +
         source.text.substr(0, kMaxStatement);
}

}  // namespace

std::string describe_waiting(const std::vector<const Cluster *> &clusters) {
  std::string text;
  int num_groups = 0;
  for (const Cluster *cluster : clusters)
    for (const auto &block : cluster->blocks)
      for (const auto &warp : block->warps)
        for (const LaneGroup &group : warp->groups)
          if (num_groups++ < kMaxLines) text += describe_group(*warp, group);
  if (num_groups > kMaxLines) text += format("\n    and %d more", num_groups - kMaxLines);
  return text;
}

}  // namespace softgpu
