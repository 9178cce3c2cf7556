// Simulator state of mbarriers (sm90_barrier.h).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "host/engine.h"

namespace mp::host::engine {

struct Mbarrier {
  Block *block;
  uint32_t offset;       ///< in the arena; the bytes there are unused
  int arrivals;          ///< expected in every phase
  int pending;           ///< arrivals missing in the current phase
  int64_t bytes;         ///< tx-count: bytes expected in the current phase and not yet complete
  int64_t num_complete;  ///< phases; also the index of the current phase
  uint32_t waiting[kMaxWarps];  ///< lanes, by warp
};

/// All mbarriers of a block.
struct Barriers {
  std::vector<uint32_t> offsets;   ///< offsets of the mbarriers, for lookup
  std::deque<Mbarrier> mbarriers;  ///< deque: elements never move

  void begin_block() {
    offsets.clear();
    mbarriers.clear();
  }
};

/// Completes the barrier in progress: all threads have arrived or have returned.
void release_block_barrier(Block &);
void release_cluster_barrier(Cluster &);

}  // namespace mp::host::engine
