// Clusters: addresses in distributed shared memory, cluster_sync, and state.
#include <utility>

#include "host/barriers.h"
#include "host/cluster.h"
#include "host/shared_memory.h"
#include "kernels/simt/sm90_barrier.h"

namespace mp::host {

namespace engine {

namespace {

constexpr int kRankShift = 24;
constexpr SmemAddress kOffsetMask = (1u << kRankShift) - 1;

Text describe_sync(const void *object) {
  const Cluster &cluster = *static_cast<const Cluster *>(object);
  return words("where %d of %d threads have arrived", cluster.at_sync, cluster.alive);
}

}  // namespace

bool is_mapped(SmemAddress address) {
  return address >> kRankShift != 0;
}
uint32_t offset_in_arena(SmemAddress address) {
  return address & kOffsetMask;
}

Block &block_of(SmemAddress address, const char *primitive, source_location where) {
  Block &own = *current->block;
  const int rank = is_mapped(address) ? static_cast<int>(address >> kRankShift) - 1 : own.rank;
  if (rank >= own.cluster->size)
    violation(where, "passes an address in block %d of its cluster of %d to %s", rank,
              own.cluster->size, primitive);
  Block &block = own.cluster->blocks[rank];
  if (block.alive == 0)
    violation(where, "uses shared memory of block %lld, which has returned, in %s",
              static_cast<long long>(block.index), primitive);
  return block;
}

std::byte *smem_at(SmemAddress address, size_t bytes, const char *primitive,
                   source_location where) {
  return smem_at(block_of(address, primitive, where), address, bytes, primitive, where);
}

std::byte *smem_at(const Block &block, SmemAddress address, size_t bytes, const char *primitive,
                   source_location where) {
  const SharedMemory &smem = *block.smem;
  std::byte *const memory = smem.at(offset_in_arena(address));
  if (smem.holds(memory, bytes)) return memory;
  if (!smem.holds(memory, 1))
    violation(where, "passes an address outside all shared variables to %s", primitive);
  violation(where, "passes %zu bytes at shared %s to %s, which run past the end of the variable",
            bytes, smem.locate(memory).text, primitive);
}

void release_cluster_barrier(Cluster &cluster) {
  cluster.at_sync = 0;
  for (int w = 0; w < cluster.num_warps; w++)
    if (cluster.sync_waiting[w] != 0)
      wake(cluster.warps[w], std::exchange(cluster.sync_waiting[w], 0u));
}

}  // namespace engine

using namespace engine;

SmemAddress smem_address(const void *smem, source_location where) {
  const size_t offset =
      static_cast<size_t>(static_cast<const std::byte *>(smem) - current->block->smem->begin());
  if (offset >= SharedMemory::capacity())
    violation(where, "passes an address to smem_address that is not in its block's shared memory");
  return static_cast<SmemAddress>(offset);
}

SmemAddress in_block(SmemAddress own, int rank, source_location where) {
  const int size = current->block->cluster->size;
  if (own >> kRankShift != 0)
    violation(where, "passes an address to in_block that is already mapped to a block");
  if (rank < 0 || rank >= size)
    violation(where, "maps an address to block %d of its cluster of %d in in_block", rank, size);
  return own | static_cast<SmemAddress>(rank + 1) << kRankShift;
}

void cluster_sync(source_location where) {
  Thread &me = *current;
  Cluster &cluster = *me.block->cluster;
  const int slot = me.warp->slot;
  if (cluster.sync_waiting[slot] == 0)
    cluster.sync_at[slot] = where;
  else if (!same_line(cluster.sync_at[slot], where))
    violation(where, "calls a different cluster_sync than its warp, which is at %s",
              file_and_line(cluster.sync_at[slot]).text);
  cluster.at_sync++;
  if (cluster.at_sync == cluster.alive) {
    release_cluster_barrier(cluster);
    return;
  }
  cluster.sync_waiting[slot] |= 1u << me.lane;
  block_until_woken(me, "cluster_sync", where, {&cluster, describe_sync});
}

}  // namespace mp::host

// ---------------------------------------------------------------------------- state

namespace mp::host::engine {

namespace {

template <class T>
void grow(std::vector<std::unique_ptr<T>> &parts, size_t count) {
  while (parts.size() < count) parts.push_back(std::make_unique<T>());
}

}  // namespace

void ClusterState::prepare(const Grid &grid) {
  if (threads_.size() != static_cast<size_t>(grid.cluster) * grid.num_threads ||
      blocks_.size() != static_cast<size_t>(grid.cluster))
    shape(grid.cluster, grid.num_threads);
}

void ClusterState::begin(const Grid &grid, int64_t index, const Mode &mode) {
  prepare(grid);
  cluster_.alive = static_cast<int>(threads_.size());
  cluster_.at_sync = 0;
  for (Warp &warp : warps_) {
    warp.ready = 0;
    warp.alive = ~0u;
    warp.arrived = 0;
    warp.mma_done = 0;
    warp.mma_waiting = 0;
    cluster_.sync_waiting[warp.slot] = 0;
    for (int i = 0; i < kMmaSlots; i++) warp.mma[i].arrived = 0;
  }
  for (Thread &thread : threads_) {
    thread.fiber = nullptr;
    thread.may_use_gmem = !grid.uses_pdl;
    thread.mma_issued = 0;
    thread.copy_group = 0;
    if (!thread.copies.empty()) thread.copies.clear();
  }
  for (Block &block : blocks_) begin_block(block, grid, index, mode);
}

void ClusterState::begin_block(Block &block, const Grid &grid, int64_t index, const Mode &mode) {
  block.index = index * grid.cluster + block.rank;
  block.grid_size = grid.num_blocks;
  block.alive = grid.num_threads;
  block.at_barrier = 0;
  for (int w = 0; w < block.num_warps(); w++) block.barrier_waiting[w] = 0;
  block.smem->begin_block(grid.dynamic_smem_bytes, mode);
  block.dynamic_smem = block.smem->dynamic();
  block.barriers->begin_block();
  block.async_proxy->begin_block();
  block.warpgroups->begin_block();
}

void ClusterState::shape(int num_blocks, int num_threads) {
  const int num_warps = num_blocks * num_threads / kWarpSize;
  // threads_ is cleared first and allocated last: if an allocation fails, it stays empty and
  // prepare() calls shape() again.
  threads_.clear();
  warps_ = std::vector<Warp>(static_cast<size_t>(num_warps));
  mma_ = std::vector<MmaSlot>(static_cast<size_t>(num_warps) * kMmaSlots);
  blocks_ = std::vector<Block>(static_cast<size_t>(num_blocks));
  grow(memories_, blocks_.size());
  grow(barriers_, blocks_.size());
  grow(async_proxies_, blocks_.size());
  grow(warpgroups_, blocks_.size());
  threads_ = std::vector<Thread>(static_cast<size_t>(num_blocks) * num_threads);
  cluster_.blocks = blocks_.data();
  cluster_.size = num_blocks;
  cluster_.warps = warps_.data();
  cluster_.num_warps = num_warps;
  for (int b = 0; b < num_blocks; b++) shape_block(b, num_threads);
}

void ClusterState::shape_block(int rank, int num_threads) {
  Block &block = blocks_[rank];
  block.cluster = &cluster_;
  block.rank = rank;
  block.num_threads = num_threads;
  block.warps = &warps_[static_cast<size_t>(rank) * num_threads / kWarpSize];
  block.smem = memories_[rank].get();
  block.barriers = barriers_[rank].get();
  block.async_proxy = async_proxies_[rank].get();
  block.warpgroups = warpgroups_[rank].get();
  for (int w = 0; w < block.num_warps(); w++) shape_warp(block, w);
}

void ClusterState::shape_warp(Block &block, int index) {
  Warp &warp = block.warps[index];
  warp.block = &block;
  warp.index = index;
  warp.slot = static_cast<int>(&warp - warps_.data());
  warp.lanes = &threads_[static_cast<size_t>(warp.slot) * kWarpSize];
  warp.mma = &mma_[static_cast<size_t>(warp.slot) * kMmaSlots];
  for (int lane = 0; lane < kWarpSize; lane++) {
    Thread &thread = warp.lanes[lane];
    thread.warp = &warp;
    thread.block = &block;
    thread.engine = engine_;
    thread.index = index * kWarpSize + lane;
    thread.lane = lane;
  }
}

}  // namespace mp::host::engine
