// Simulator state of mbarriers and named barriers (sm90_barrier.h).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "host/engine.h"

namespace mp::host::engine {

/// 64-bit mbarrier object in shared memory.
struct MbarrierWord {
  uint64_t phase : 1;      ///< parity of the current phase
  uint64_t arrivals : 20;  ///< expected in every phase
  uint64_t pending : 20;   ///< arrivals missing in the current phase
  int64_t bytes : 23;      ///< tx-count: bytes expected in the current phase and not yet complete
};
static_assert(sizeof(MbarrierWord) == sizeof(uint64_t));

/// Simulator state of an mbarrier besides its word.
struct Mbarrier {
  Block *block;
  uint32_t offset;       ///< in the arena
  uint64_t word;         ///< expected word in the arena
  int64_t num_complete;  ///< phases; also the index of the current phase
  const Thread *initialized_by;
  bool is_fenced;
  uint32_t waiting[kMaxWarps];  ///< lanes, by warp
};

struct NamedBarrier {
  int threads;                  ///< expected arrivals; 0 if no thread has arrived
  int arrived;                  ///< threads, counted per full warp
  source_location at;           ///< call site of the first thread to arrive
  uint32_t lanes[kMaxWarps];    ///< lanes that have arrived, by warp
  uint32_t waiting[kMaxWarps];  ///< subset of `lanes` that waits in named_barrier_sync
  source_location warp_at[kMaxWarps];
};
constexpr int kNamedBarriers = 16;  // number 0 is block_sync

/// All barriers of a block.
struct Barriers {
  std::vector<uint32_t> offsets;   ///< offsets of the mbarriers, for lookup
  std::deque<Mbarrier> mbarriers;  ///< deque: elements never move
  NamedBarrier named[kNamedBarriers];
  uint32_t named_used = ~0u;  ///< bit i: named[i] has been used since begin_block

  void begin_block();
  /// Returns an empty string, or a report of an mbarrier in the middle of a phase at the end of the
  /// block: its arrival count does not match the kernel's arrivals.
  std::string unfinished() const;
};

/// Completes the barrier in progress: all threads have arrived or have returned.
void release_block_barrier(Block &);
void release_cluster_barrier(Cluster &);

}  // namespace mp::host::engine
