#include "softgpu/machine/cluster.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/race_check.h"
#include "softgpu/options.h"

namespace softgpu {
namespace {

/// Fills memory with a word, including a partial word at the end.
void fill_with(std::byte *bytes, size_t size, uint32_t word) {
  for (size_t i = 0; i < size; i += sizeof word)
    std::memcpy(bytes + i, &word, std::min(sizeof word, size - i));
}

/// Sets a register of all lanes to value(lane).
template <class F>
void set_row(std::byte *registers, RegisterSlot row, uint8_t width, F &&value) {
  std::byte *to = registers + row;
  Lanes lanes = 0;
  for (uint32_t lane = 0; lane < kWarpSize; lane++) {
    const uint64_t wide = value(lane);
    const auto narrow = static_cast<uint32_t>(wide);
    if (width == 8) std::memcpy(to + lane * 8, &wide, 8);
    if (width == 4) std::memcpy(to + lane * 4, &narrow, 4);
    lanes |= static_cast<Lanes>(wide != 0) << lane;
  }
  if (width == 1) std::memcpy(to, &lanes, sizeof lanes);
}

uint64_t shared_address(uint64_t offset, uint32_t rank) {
  return kReservedSmem + offset + (uint64_t{rank} << kRankShift);
}

/// Returns the coordinates of the index-th cell of a box, x first.
Dim3 place_in(const Dim3 &box, uint64_t index) {
  return {static_cast<uint32_t>(index % box[0]), static_cast<uint32_t>(index / box[0] % box[1]),
          static_cast<uint32_t>(index / box[0] / box[1])};
}

}  // namespace

uint32_t smem_of(const Grid &grid) {
  const Program &program = *grid.program;
  const bool has_dynamic = program.has_dynamic_smem || grid.dynamic_smem != 0;
  return has_dynamic ? program.dynamic_smem_offset + grid.dynamic_smem : program.static_smem;
}

Dim3 block_id(const Grid &grid, uint64_t cluster, uint32_t rank) {
  Dim3 num_clusters{};
  for (size_t i = 0; i < 3; i++) num_clusters[i] = grid.num_blocks[i] / grid.cluster[i];
  const Dim3 first = place_in(num_clusters, cluster), inside = place_in(grid.cluster, rank);
  Dim3 id{};
  for (size_t i = 0; i < 3; i++) id[i] = first[i] * grid.cluster[i] + inside[i];
  return id;
}

ClusterMaker::ClusterMaker(const Grid &grid) : grid_(grid) {
  const Program &program = *grid.program;
  registers_.resize(program.constant_bytes);
  for (const ConstantRow &constant : program.constants) {
    uint64_t value = constant.value;
    if (constant.kind == ConstantKind::kShared) {
      shared_addresses_.push_back({constant.row, constant.width, value});
      value = shared_address(value, 0);
    }
    if (constant.kind == ConstantKind::kParameter)
      value += reinterpret_cast<uint64_t>(grid.parameters);
    set_row(registers_.data(), constant.row, constant.width, [&](uint32_t) { return value; });
  }
  for (const SpecialRow &special : program.specials) {
    const SpecialValue value = special_register(special.name);
    if (!value) fault("unknown special register " + special.name);
    specials_.push_back({special.row, special.width, value});
  }
}

std::unique_ptr<Cluster> ClusterMaker::make(Worker &worker, KernelCounters &tally,
                                            uint64_t index) const {
  auto cluster = std::make_unique<Cluster>();
  cluster->grid = &grid_;
  cluster->worker = &worker;
  cluster->index = index;
  for (uint32_t rank = 0; rank < grid_.blocks_per_cluster(); rank++)
    cluster->blocks.push_back(make_block(worker, tally, *cluster, rank));
  cluster->num_warps = grid_.blocks_per_cluster() * static_cast<uint32_t>(grid_.warps_per_block());
  cluster->num_running = cluster->num_warps;
  return cluster;
}

std::unique_ptr<Block> ClusterMaker::make_block(Worker &worker, KernelCounters &tally,
                                                Cluster &cluster, uint32_t rank) const {
  const Program &program = *grid_.program;
  auto block = std::make_unique<Block>();
  block->cluster = &cluster;
  block->grid = &grid_;
  block->rank = rank;
  block->in_cluster = place_in(grid_.cluster, rank);
  block->id = block_id(grid_, cluster.index, rank);

  if (!worker.shared_memories.empty()) {
    block->smem = std::move(worker.shared_memories.back());
    worker.shared_memories.pop_back();
  }
  block->smem.reset(rank, smem_of(grid_), program.uses_async_proxy);
  const int num_warps = grid_.warps_per_block();
  block->local.resize(size_t{program.local_bytes} * static_cast<size_t>(num_warps * kWarpSize));
  fill_with(block->local.data(), block->local.size(), kPoison);
  block->wgmma.resize(static_cast<size_t>((num_warps + 3) / 4));
  for (int i = 0; i < num_warps; i++) block->warps.push_back(make_warp(worker, tally, *block, i));
  block->num_running = num_warps;
  return block;
}

std::unique_ptr<Warp> ClusterMaker::make_warp(Worker &worker, KernelCounters &tally, Block &block,
                                              int index) const {
  auto warp = std::make_unique<Warp>();
  warp->program = grid_.program;
  warp->block = &block;
  warp->tally = &tally;
  warp->index = index;
  const uint32_t num_left = grid_.threads_per_block() - static_cast<uint32_t>(warp->first_thread());
  warp->alive = num_left >= kWarpSize ? kAllLanes : (Lanes{1} << num_left) - 1;
  warp->groups.push_back({0, warp->alive, false});
  set_registers(worker, *warp);
  return warp;
}

void ClusterMaker::set_registers(Worker &worker, Warp &warp) const {
  if (worker.register_file_bytes < warp.program->register_bytes) {
    worker.register_files.clear();
    worker.register_file_bytes = warp.program->register_bytes;
  }
  warp.register_file_bytes = worker.register_file_bytes;
  if (worker.register_files.empty()) {
    warp.registers = static_cast<std::byte *>(std::aligned_alloc(64, worker.register_file_bytes));
    fill_with(warp.registers, worker.register_file_bytes, kPoison);
  } else {
    warp.registers = worker.register_files.back().release();
    worker.register_files.pop_back();
  }
  std::memcpy(warp.registers, registers_.data(), registers_.size());
  for (const auto &[begin, size] : warp.program->read_first)
    fill_with(warp.registers + begin, size, kPoison);
  for (const Special &special : specials_) {
    set_row(warp.registers, special.row, special.width,
            [&](uint32_t lane) { return special.value(warp, lane); });
  }
  const uint32_t rank = warp.block->rank;
  if (rank == 0) return;
  for (const SharedAddress &shared : shared_addresses_) {
    set_row(warp.registers, shared.row, shared.width,
            [&](uint32_t) { return shared_address(shared.offset, rank); });
  }
}

void ClusterMaker::recycle(Worker &worker, Cluster &cluster) {
  for (auto &block : cluster.blocks) {
    worker.shared_memories.push_back(std::move(block->smem));
    for (auto &warp : block->warps) {
      AlignedBytes registers(std::exchange(warp->registers, nullptr));
      // A grid that overlaps with this one may have increased the size meanwhile.
      if (warp->register_file_bytes == worker.register_file_bytes)
        worker.register_files.push_back(std::move(registers));
    }
  }
}

void end_warp(Warp &warp) {
  finish_copies(warp);
  if (!warp.wgmma.operations.empty()) {
    violation(warp, *warp.wgmma.operations[0].at, -1, "exits with wgmma in flight");
  }
  finish_bulk_copies(warp);
  if (warp.has_arrived_at_cluster) {
    violation(warp, warp.program->code.back(), -1,
              "exits between barrier.cluster.arrive and barrier.cluster.wait");
  }
  if (--warp.block->num_running == 0) allow_dependents(*warp.block);
  warp.block->cluster->num_running--;
  count_exited_warp(warp);
}

// ---- programmatic dependent launch

void allow_dependents(Block &block) {
  if (block.allows_dependents) return;
  block.allows_dependents = true;
  if (RaceCheck *races = block.cluster->races.get()) races->allow_dependents(block);
  block.cluster->state->num_blocks_holding--;
}

bool may_leave_parking(Cluster &cluster) {
  GridState &state = *cluster.state;
  if (cluster.was_parked) return true;
  if (state.parks && !(cluster.is_parked && state.may_leave.exchange(false))) {
    if (!cluster.is_parked) state.num_parked++;
    cluster.is_parked = true;
    return false;
  }
  if (cluster.is_parked) state.num_parked--;
  cluster.is_parked = false;
  cluster.was_parked = true;
  return true;
}

// ---- special registers

namespace {

using Entry = std::pair<std::string_view, SpecialValue>;

const Grid &grid_of(const Warp &w) {
  return *w.block->grid;
}

uint32_t thread_in_block(const Warp &w, uint32_t lane) {
  return static_cast<uint32_t>(w.first_thread()) + lane;
}

template <size_t kAxis>
uint64_t tid(const Warp &w, uint32_t lane) {
  const Dim3 &n = grid_of(w).num_threads;
  const uint32_t thread = thread_in_block(w, lane);
  if constexpr (kAxis == 0) return thread % n[0];
  if constexpr (kAxis == 1) return thread / n[0] % n[1];
  return thread / n[0] / n[1];
}

/// Function of a warp and a lane.
#define SOFTGPU_VALUE(expression) \
  [](const Warp &w, uint32_t lane) -> uint64_t { return (void)w, (void)lane, expression; }

/// Component of a three-dimensional register.
template <size_t kAxis>
SpecialValue along_axis(std::string_view name) {
  static constexpr Entry kEntries[] = {
      {"%tid", tid<kAxis>},
      {"%ntid", SOFTGPU_VALUE(grid_of(w).num_threads[kAxis])},
      {"%ctaid", SOFTGPU_VALUE(w.block->id[kAxis])},
      {"%nctaid", SOFTGPU_VALUE(grid_of(w).num_blocks[kAxis])},
      {"%cluster_ctaid", SOFTGPU_VALUE(w.block->in_cluster[kAxis])},
      {"%cluster_nctaid", SOFTGPU_VALUE(grid_of(w).cluster[kAxis])},
      {"%clusterid", SOFTGPU_VALUE(w.block->id[kAxis] / grid_of(w).cluster[kAxis])},
      {"%nclusterid", SOFTGPU_VALUE(grid_of(w).num_blocks[kAxis] / grid_of(w).cluster[kAxis])},
  };
  for (const Entry &entry : kEntries)
    if (entry.first == name) return entry.second;
  return nullptr;
}

/// Returns the multiprocessor of the block; blocks are assigned round robin.
uint64_t smid(const Warp &w, uint32_t) {
  const uint64_t block = w.block->cluster->index * grid_of(w).blocks_per_cluster() + w.block->rank;
  return block % static_cast<uint64_t>(options().num_sms);
}

constexpr Entry kScalars[] = {
    {"%laneid", SOFTGPU_VALUE(lane)},
    {"%warpid", SOFTGPU_VALUE(static_cast<uint64_t>(w.index))},
    {"%nwarpid", SOFTGPU_VALUE(64)},
    {"%smid", smid},
    {"%nsmid", SOFTGPU_VALUE(static_cast<uint64_t>(options().num_sms))},
    {"%gridid", SOFTGPU_VALUE(grid_of(w).id)},
    {"%cluster_ctarank", SOFTGPU_VALUE(w.block->rank)},
    {"%cluster_nctarank", SOFTGPU_VALUE(grid_of(w).blocks_per_cluster())},
    {"%is_explicit_cluster",
     SOFTGPU_VALUE(w.program->explicit_cluster || grid_of(w).blocks_per_cluster() > 1)},
    {"%lanemask_eq", SOFTGPU_VALUE(1u << lane)},
    {"%lanemask_lt", SOFTGPU_VALUE((1u << lane) - 1)},
    {"%lanemask_le", SOFTGPU_VALUE((2u << lane) - 1)},
    {"%lanemask_ge", SOFTGPU_VALUE(kAllLanes << lane)},
    {"%lanemask_gt", SOFTGPU_VALUE(kAllLanes << lane << 1)},
    {"%dynamic_smem_size", SOFTGPU_VALUE(grid_of(w).dynamic_smem)},
    {"%total_smem_size", SOFTGPU_VALUE(w.block->smem.size())},
    {"%aggr_smem_size", SOFTGPU_VALUE(w.block->smem.end())},
};
#undef SOFTGPU_VALUE

}  // namespace

SpecialValue special_register(std::string_view name) {
  if (name.ends_with(".x")) return along_axis<0>(name.substr(0, name.size() - 2));
  if (name.ends_with(".y")) return along_axis<1>(name.substr(0, name.size() - 2));
  if (name.ends_with(".z")) return along_axis<2>(name.substr(0, name.size() - 2));
  for (const Entry &entry : kScalars)
    if (entry.first == name) return entry.second;
  return nullptr;
}

}  // namespace softgpu
