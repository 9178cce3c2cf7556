// The barriers of sm90_barrier.h in the simulator: their state.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "kernels/simt/sim/engine.h"

namespace mp::host::engine {

/// The 64-bit word in shared memory.
struct MbarrierWord {
  uint64_t phase : 1;      ///< parity of the phase in progress
  uint64_t arrivals : 20;  ///< of every phase
  uint64_t pending : 20;   ///< of them, not yet arrived in this one
  int64_t bytes : 23;      ///< expected in this one and not yet come
};
static_assert(sizeof(MbarrierWord) == sizeof(uint64_t));

/// What the simulator knows of an mbarrier besides its word.
struct Mbarrier {
  Block *block;
  uint32_t offset;       ///< in the arena
  int id;                ///< in the cluster, from 0
  uint64_t word;         ///< what the arena must hold
  int64_t num_complete;  ///< phases; so also the index of the one in progress
  const Thread *initialised_by;
  bool is_fenced;
  uint32_t waiting[kMaxWarps];  ///< lanes, by warp
};

struct NamedBarrier {
  int threads;                  ///< expected to arrive; 0 while none has
  int arrived;                  ///< in whole warps
  source_location at;           ///< of the first thread to arrive
  uint32_t lanes[kMaxWarps];    ///< that have arrived, by warp
  uint32_t waiting[kMaxWarps];  ///< of them, those in named_barrier_sync
  source_location warp_at[kMaxWarps];
};
constexpr int kNamedBarriers = 16;  // 0 is block_sync

/// Of one block.
struct Barriers {
  std::vector<uint32_t> offsets;   ///< of the mbarriers, to find one
  std::deque<Mbarrier> mbarriers;  ///< stays in place as it grows
  NamedBarrier named[kNamedBarriers];
  uint32_t named_used = ~0u;  ///< those that are not as begin_block leaves them

  void begin_block();
  /// Empty, or which mbarrier was left in the middle of a phase: its count is not what arrives.
  std::string unfinished() const;
};

/// NULL if there is none at that address.
const Mbarrier *find_mbarrier(SmemAddress);

/// All have come to the barrier in progress, or returned.
void release_block_barrier(Block &);
void release_cluster_barrier(Cluster &);

}  // namespace mp::host::engine
