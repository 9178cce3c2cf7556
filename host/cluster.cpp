// Clusters: addresses in distributed shared memory, cluster_sync, mbarriers, and state.  Threads
// that wait for an mbarrier sleep instead of polling.
#include <cstring>

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

Block &block_of(SmemAddress address, const char *primitive, source_location where) {
  Block &own = *current->block;
  if (address >> kRankShift == 0) return own;
  const int rank = static_cast<int>(address >> kRankShift) - 1;
  if (rank >= own.cluster->size)
    violation(where, "passes an address in block %d of its cluster of %d to %s", rank,
              own.cluster->size, primitive);
  return own.cluster->blocks[rank];
}

std::byte *smem_at(SmemAddress address, size_t bytes, const char *primitive,
                   source_location where) {
  const SharedMemory &smem = *block_of(address, primitive, where).smem;
  std::byte *const memory = smem.at(address & kOffsetMask);
  if (smem.holds(memory, bytes)) return memory;
  if (!smem.holds(memory, 1))
    violation(where, "passes an address outside all shared variables to %s", primitive);
  violation(where, "passes %zu bytes at shared %s to %s, which run past the end of the variable",
            bytes, smem.locate(memory).text, primitive);
}

void copy_16(void *smem, const void *gmem, int valid_bytes, source_location where) {
  constexpr size_t kBytes = 16;
  if (!current->block->smem->holds(smem, kBytes))
    violation(where, "copies to an address outside all shared variables in copy_async_16");
  const size_t valid = static_cast<size_t>(valid_bytes);
  if (valid == kBytes) {
    std::memcpy(smem, gmem, kBytes);
    return;
  }
  if (valid > 0) std::memcpy(smem, gmem, valid);
  std::memset(static_cast<char *>(smem) + valid, 0, kBytes - valid);
}

void release_cluster_barrier(Cluster &cluster) {
  cluster.at_sync = 0;
  wake_waiting(cluster.warps, cluster.num_warps, cluster.sync_waiting);
}

// ---------------------------------------------------------------------------- mbarriers

namespace {

Mbarrier &mbarrier_at(SmemAddress address, const char *primitive, source_location where) {
  const Block &block = block_of(address, primitive, where);
  uint64_t index;
  const std::byte *const smem = smem_at(address, sizeof index, primitive, where);
  std::memcpy(&index, smem, sizeof index);
  std::deque<Mbarrier> &all = block.barriers->all;
  if (index >= all.size() || all[index].smem != smem)
    violation(where, "uses mbarrier %s in %s, which is not initialized",
              block.smem->locate(smem).text, primitive);
  return all[index];
}

/// Completes the phase if no arrivals or bytes are missing.
void settle(Mbarrier &bar) {
  if (bar.pending != 0 || bar.bytes != 0) return;
  bar.pending = bar.arrivals;
  bar.num_complete++;
  wake_waiting(bar.block->warps, bar.block->num_warps(), bar.waiting);
}

void arrive(SmemAddress address, uint32_t bytes, const char *primitive, source_location where) {
  Mbarrier &bar = mbarrier_at(address, primitive, where);
  bar.bytes += bytes;
  bar.pending--;
  settle(bar);
}

Text describe_mbarrier(const void *object) {
  const Mbarrier &bar = *static_cast<const Mbarrier *>(object);
  Text bytes{};
  if (bar.bytes > 0) bytes = words(" and %lld bytes", static_cast<long long>(bar.bytes));
  if (bar.bytes < 0)
    bytes = words(" and has %lld unexpected bytes", -static_cast<long long>(bar.bytes));
  return words("for mbarrier %s, whose phase %lld of parity %d lacks %d of %d arrivals%s",
               bar.block->smem->locate(bar.smem).text, static_cast<long long>(bar.num_complete),
               static_cast<int>(bar.num_complete % 2), bar.pending, bar.arrivals, bytes.text);
}

}  // namespace

void mbarrier_complete_tx(SmemAddress address, uint32_t bytes, source_location where) {
  Mbarrier &bar = mbarrier_at(address, "complete_tx", where);
  bar.bytes -= bytes;
  settle(bar);
}

}  // namespace engine

using namespace engine;

SmemAddress smem_address(const void *smem) {
  return static_cast<SmemAddress>(static_cast<const std::byte *>(smem) -
                                  current->block->smem->begin());
}

SmemAddress in_block(SmemAddress own, int rank) {
  return own | static_cast<SmemAddress>(rank + 1) << kRankShift;
}

void cluster_sync(source_location where) {
  Thread &me = *current;
  Cluster &cluster = *me.block->cluster;
  cluster.at_sync++;
  if (cluster.at_sync == cluster.alive) {
    release_cluster_barrier(cluster);
    return;
  }
  cluster.sync_waiting[me.warp->slot] |= 1u << me.lane;
  block_until_woken(me, "cluster_sync", where, {&cluster, describe_sync});
}

void mbarrier_init(SmemAddress address, int arrivals, source_location where) {
  Block &block = block_of(address, "mbarrier_init", where);
  const uint64_t index = block.barriers->all.size();
  std::byte *const smem = smem_at(address, sizeof index, "mbarrier_init", where);
  std::memcpy(smem, &index, sizeof index);
  block.barriers->all.push_back({&block, smem, arrivals, arrivals, 0, 0, {}});
}

void mbarrier_arrive(SmemAddress address, source_location where) {
  arrive(address, 0, "mbarrier_arrive", where);
}

void mbarrier_arrive_cluster(SmemAddress address, source_location where) {
  arrive(address, 0, "mbarrier_arrive_cluster", where);
}

void mbarrier_arrive_expect(SmemAddress address, uint32_t bytes, source_location where) {
  arrive(address, bytes, "mbarrier_arrive_expect", where);
}

void mbarrier_wait(SmemAddress address, uint32_t parity, source_location where) {
  Mbarrier &bar = mbarrier_at(address, "mbarrier_wait", where);
  if (bar.num_complete % 2 != static_cast<int64_t>(parity)) return;
  Thread &me = *current;
  bar.waiting[me.warp->index] |= 1u << me.lane;
  block_until_woken(me, "mbarrier_wait", where, {&bar, describe_mbarrier});
}

}  // namespace mp::host

// ---------------------------------------------------------------------------- state

namespace mp::host::engine {

void ClusterState::prepare(const Grid &grid) {
  if (threads_.size() != static_cast<size_t>(grid.cluster) * grid.num_threads ||
      blocks_.size() != static_cast<size_t>(grid.cluster))
    shape(grid.cluster, grid.num_threads);
}

void ClusterState::begin(const Grid &grid, int64_t index) {
  prepare(grid);
  cluster_.alive = static_cast<int>(threads_.size());
  cluster_.at_sync = 0;
  for (Warp &warp : warps_) {
    warp.ready = ~0u;
    warp.alive = ~0u;
    warp.arrived = 0;
    warp.mma_done = 0;
    warp.mma_waiting = 0;
    cluster_.sync_waiting[warp.slot] = 0;
    for (int i = 0; i < kMmaSlots; i++) warp.mma[i].arrived = 0;
  }
  for (Thread &thread : threads_) {
    thread.fiber = nullptr;
    thread.mma_issued = 0;
  }
  for (Block &block : blocks_) begin_block(block, grid, index);
}

void ClusterState::begin_block(Block &block, const Grid &grid, int64_t index) {
  block.index = index * grid.cluster + block.rank;
  block.grid_size = grid.num_blocks;
  block.alive = grid.num_threads;
  block.at_barrier = 0;
  for (int w = 0; w < block.num_warps(); w++) block.barrier_waiting[w] = 0;
  block.smem->begin_block(grid.dynamic_smem_bytes);
  block.dynamic_smem = block.smem->dynamic();
  block.barriers->all.clear();
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
  while (parts_.size() < blocks_.size()) parts_.push_back(std::make_unique<BlockParts>());
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
  BlockParts &parts = *parts_[rank];
  block.smem = &parts.smem;
  block.barriers = &parts.barriers;
  block.warpgroups = &parts.warpgroups;
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
