// The state of mbarriers and named barriers (sm90_barrier.h) in the simulator.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "host/engine.h"

namespace mp::host::engine {

/// The 64-bit mbarrier object in shared memory.
struct MbarrierWord {
  uint64_t phase : 1;      ///< parity of the current phase
  uint64_t arrivals : 20;  ///< expected in every phase
  uint64_t pending : 20;   ///< arrivals that the current phase still waits for
  int64_t bytes : 23;      ///< tx-count: expected in the current phase and not yet complete
};
static_assert(sizeof(MbarrierWord) == sizeof(uint64_t));

/// What the simulator knows of an mbarrier besides its word.
struct Mbarrier {
  Block *block;
  uint32_t offset;       ///< in the arena
  int id;                ///< in the cluster, from 0
  uint64_t word;         ///< what the arena must hold
  int64_t num_complete;  ///< phases; also the index of the current phase
  const Thread *initialised_by;
  bool is_fenced;
  uint32_t waiting[kMaxWarps];  ///< lanes, by warp
};

struct NamedBarrier {
  int threads;                  ///< expected to arrive; 0 while none has
  int arrived;                  ///< threads, counted when their whole warp has arrived
  source_location at;           ///< of the first thread to arrive
  uint32_t lanes[kMaxWarps];    ///< lanes that have arrived, by warp
  uint32_t waiting[kMaxWarps];  ///< of them, the lanes that wait in named_barrier_sync
  source_location warp_at[kMaxWarps];
};
constexpr int kNamedBarriers = 16;  // number 0 is block_sync

/// Of one block.
struct Barriers {
  std::vector<uint32_t> offsets;   ///< of the mbarriers, to find one
  std::deque<Mbarrier> mbarriers;  ///< stays in place as it grows
  NamedBarrier named[kNamedBarriers];
  uint32_t named_used = ~0u;  ///< bit i: named[i] has been used since begin_block

  void begin_block();
  /// Empty, or a report of an mbarrier that the block left in the middle of a phase: its arrival count
  /// does not match the arrivals of the kernel.
  std::string unfinished() const;
};

/// NULL if no mbarrier was initialised at that address.
const Mbarrier *find_mbarrier(SmemAddress);

/// All threads have arrived at the barrier in progress, or have returned.
void release_block_barrier(Block &);
void release_cluster_barrier(Cluster &);

}  // namespace mp::host::engine
