// State of the cluster that an engine runs, and its mbarriers (sm90_barrier.h).  Its memory is
// reused for the next cluster.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "host/engine.h"
#include "host/shared_memory.h"
#include "host/wgmma.h"

namespace mp::host::engine {

struct Mbarrier {
  Block *block;
  std::byte *smem;       ///< bytes that hold its index in Barriers
  int arrivals;          ///< expected in every phase
  int pending;           ///< arrivals missing in the current phase
  int64_t bytes;         ///< tx-count: bytes expected in the current phase and not yet complete
  int64_t num_complete;  ///< phases; also the index of the current phase
  uint32_t waiting[kMaxWarps];  ///< lanes, by warp
};

/// All mbarriers of a block.
struct Barriers {
  std::deque<Mbarrier> all;  ///< deque: elements never move
};

/// Completes the barrier in progress: all threads have arrived or have returned.
void release_block_barrier(Block &);
void release_cluster_barrier(Cluster &);

class ClusterState {
 public:
  explicit ClusterState(Engine *engine) : engine_(engine) {}

  /// Allocates the memory that every cluster of the grid needs at its start.
  void prepare(const Grid &);
  /// Resets all state to that of a cluster that has not started.
  void begin(const Grid &, int64_t index);
  /// Discards the threads of an abandoned cluster; the next cluster allocates new ones.
  void abandon() { threads_.clear(); }

  Cluster &cluster() { return cluster_; }
  const std::vector<Block> &blocks() const { return blocks_; }
  const std::vector<Thread> &threads() const { return threads_; }

 private:
  void shape(int num_blocks, int num_threads);
  void shape_block(int rank, int num_threads);
  void shape_warp(Block &, int index);
  void begin_block(Block &, const Grid &, int64_t index);

  Engine *const engine_;
  Cluster cluster_{};
  std::vector<Block> blocks_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<MmaSlot> mma_;

  struct BlockParts {
    SharedMemory smem;
    Barriers barriers;
    Warpgroups warpgroups;
  };
  /// Indexed by rank; grown to the largest cluster so far.
  std::vector<std::unique_ptr<BlockParts>> parts_;
};

}  // namespace mp::host::engine
