// Warpgroups of a block in the simulator: their wgmmas.
//
// The n-th wgmma of each of the 128 threads is one operation.  It is fully issued when the last
// thread has issued it, and executed when a wait requires it, together with up to three others on
// the same accumulators.  Threads wait for each other in wgmma_wait, and in wgmma_issue if kSlots
// operations are pending.
//
// The fragments d of the 128 threads are one matrix of the warpgroup, from the first wgmma on a set
// of accumulators to the wait that retires the last one.  A thread's fragment moves to this matrix
// when the thread issues the first wgmma, and back in its wait, so a chain of wgmmas accumulates in
// place.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/engine.h"
#include "host/wgmma_arithmetic.h"

namespace mp::host::engine {

constexpr int kWarpgroupThreads = 128;
constexpr int kWarpsPerWarpgroup = kWarpgroupThreads / kWarpSize;

// Called by the running thread, see sm90_wgmma.h.
void wgmma_issue(Thread &, const WgmmaOperands &, float *d, source_location);
void wgmma_commit(const Thread &);
void wgmma_wait(Thread &, int pending_groups, source_location);

// ------------------------------------------------------------------ state

/// Accumulators of a warpgroup while wgmmas are in flight.
struct AccumulatorTile {
  alignas(64) float d[kWgmmaM * kWgmmaMaxN];  ///< row-major, n columns
  int num_bound = 0;                          ///< threads whose fragment is in this tile
};

struct WgmmaOperation {
  WgmmaOperands operands;
  AccumulatorTile *tile;
  int64_t group;
  int arrived;  ///< threads that have issued the operation
  bool is_performed;
  source_location at;
};

/// Accumulators of one thread with wgmmas in flight.
struct WgmmaBinding {
  float *d;
  AccumulatorTile *tile;
  int n;
  int64_t group;  ///< commit group of the last wgmma
};

struct WgmmaThread {
  int64_t issued = 0;  ///< operations
  int64_t group = 0;   ///< commits
  std::vector<WgmmaBinding> bound;
};

struct Warpgroup {
  static constexpr int64_t kSlots = 64;  ///< maximum lead of one thread over the others

  WgmmaThread threads[kWarpgroupThreads];
  WgmmaOperation operations[kSlots];          ///< operation i is in slot i % kSlots
  int64_t begun = 0;                          ///< operations issued by at least one thread
  int64_t performed = 0;                      ///< operations below this number are executed
  uint32_t waiting[kWarpsPerWarpgroup] = {};  ///< lanes, per warp

  WgmmaOperation &operation(int64_t number) { return operations[number % kSlots]; }
};

/// All warpgroups of a block.
struct Warpgroups {
  std::vector<Warpgroup> all;                           ///< empty until first use
  std::vector<std::unique_ptr<AccumulatorTile>> tiles;  ///< reused from block to block
  WgmmaScratch scratch;

  void begin_block() {
    all.clear();
    for (const auto &tile : tiles) tile->num_bound = 0;
  }
};

}  // namespace mp::host::engine
