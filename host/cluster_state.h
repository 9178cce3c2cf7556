// The memory in which an engine runs one cluster after the other.
#pragma once

#include <memory>
#include <vector>

#include "host/async_proxy.h"
#include "host/barriers.h"
#include "host/engine.h"
#include "host/shared_memory.h"
#include "host/wgmma.h"

namespace mp::host::engine {

class ClusterState {
 public:
  explicit ClusterState(Engine *engine) : engine_(engine) {}

  /// Gets all the memory that clusters of this grid have from the start.
  void prepare(const Grid &);
  /// Everything as a cluster finds it when it starts.
  void begin(const Grid &, int64_t index, const Mode &);
  /// The last cluster was abandoned: the next one gets new threads.
  void abandon() { threads_.clear(); }

  Cluster &cluster() { return cluster_; }
  const std::vector<Block> &blocks() const { return blocks_; }
  const std::vector<Thread> &threads() const { return threads_; }

 private:
  void shape(int num_blocks, int num_threads);
  void shape_block(int rank, int num_threads);
  void shape_warp(Block &, int index);
  void begin_block(Block &, const Grid &, int64_t index, const Mode &);

  Engine *const engine_;
  Cluster cluster_{};
  std::vector<Block> blocks_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<MmaSlot> mma_;
  // By rank; as many as were ever needed.
  std::vector<std::unique_ptr<SharedMemory>> memories_;
  std::vector<std::unique_ptr<Barriers>> barriers_;
  std::vector<std::unique_ptr<AsyncProxy>> async_proxies_;
  std::vector<std::unique_ptr<Warpgroups>> warpgroups_;
};

}  // namespace mp::host::engine
