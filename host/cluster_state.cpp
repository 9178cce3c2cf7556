#include "host/cluster_state.h"

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
  cluster_.num_mbarriers = 0;
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
