// State of the cluster that an engine runs.  Its memory is reused for the next cluster.
#pragma once

#include <memory>
#include <vector>

#include "host/barriers.h"
#include "host/engine.h"
#include "host/shared_memory.h"
#include "host/wgmma.h"

namespace mp::host::engine {

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
  // Indexed by rank; grown to the largest cluster so far.
  std::vector<std::unique_ptr<SharedMemory>> memories_;
  std::vector<std::unique_ptr<Barriers>> barriers_;
  std::vector<std::unique_ptr<Warpgroups>> warpgroups_;
};

}  // namespace mp::host::engine
