// Warpgroups of a block in the simulator: their wgmmas and their registers.
//
// The n-th wgmma of each of the 128 threads is one operation.  It is fully issued when the last
// thread has issued it.  It is executed when a wait requires it or, in strict mode, possibly as
// soon as it is fully issued.  Threads wait for each other in wgmma_wait, and in wgmma_issue if
// kSlots operations are pending.
//
// The fragments d of the 128 threads are one matrix of the warpgroup, from the first wgmma on a set
// of accumulators to the wait that retires the last one.  A thread's fragment moves to this matrix
// when the thread issues the first wgmma, and back in its wait; in between, its d is NaN.  A kernel
// therefore never sees a result before the wait, and a chain of wgmmas accumulates in place.
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
void wgmma_fence(const Thread &, source_location);
void wgmma_commit(const Thread &, source_location);
void wgmma_wait(Thread &, int pending_groups, source_location);

/// setmaxnreg: changes the registers per thread of the running warpgroup.
enum class RegisterChange { claim, release };
void change_registers(Thread &, RegisterChange, int wanted, source_location);

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
  bool binds;   ///< first wgmma on its accumulators
  bool is_performed;
  source_location at;
};

/// Accumulators of one thread with wgmmas in flight.
struct WgmmaBinding {
  float *d;
  AccumulatorTile *tile;
  int n;
  int64_t group;       ///< commit group of the last wgmma
  source_location at;  ///< call site of the last wgmma
};

struct WgmmaThread {
  int64_t issued = 0;  ///< operations
  int64_t group = 0;   ///< commits
  bool is_fenced = false;
  std::vector<WgmmaBinding> bound;
};

/// Registers per thread of a warpgroup, and the setmaxnreg in progress.
struct RegisterState {
  int per_thread = 0;
  RegisterChange change = RegisterChange::claim;
  int wanted = 0;
  source_location at;
  int arrived = 0;  ///< threads
  bool has_arrived[kWarpgroupThreads] = {};
  int64_t changes_done = 0;
};

struct Warpgroup {
  static constexpr int64_t kSlots = 64;  ///< maximum lead of one thread over the others

  WgmmaThread threads[kWarpgroupThreads];
  WgmmaOperation operations[kSlots];          ///< operation i is in slot i % kSlots
  int64_t begun = 0;                          ///< operations issued by at least one thread
  int64_t performed = 0;                      ///< operations below this number are executed
  uint32_t waiting[kWarpsPerWarpgroup] = {};  ///< lanes, per warp
  RegisterState registers;

  WgmmaOperation &operation(int64_t number) { return operations[number % kSlots]; }
};

/// All warpgroups of a block.
struct Warpgroups {
  std::vector<Warpgroup> all;                           ///< empty until first use
  int free_registers = 0;                               ///< released and not claimed
  std::vector<std::unique_ptr<AccumulatorTile>> tiles;  ///< reused from block to block
  WgmmaScratch scratch;

  void begin_block();
};

/// Implements warpgroup_of for the first use of a warpgroup in a block.
Warpgroup &begin_warpgroups(const Thread &, const char *primitive, source_location);

/// Returns the warpgroup of the running thread.
inline Warpgroup &warpgroup_of(const Thread &thread, const char *primitive, source_location where) {
  std::vector<Warpgroup> &all = thread.block->warpgroups->all;
  const size_t index = static_cast<size_t>(thread.index) / kWarpgroupThreads;
  return index < all.size() ? all[index] : begin_warpgroups(thread, primitive, where);
}

/// Reports a violation if a thread of the warpgroup has returned from the kernel.
void check_warpgroup_complete(const Thread &, const char *primitive, source_location);

/// Blocks the running thread until `wake_all`.
void block_in_warpgroup(Thread &, Warpgroup &, const char *waits_in, source_location,
                        const WaitsFor &);
void wake_all(const Block &, Warpgroup &);

inline int index_in_warpgroup(const Thread &thread) {
  return thread.index % kWarpgroupThreads;
}

/// Reports a violation if a thread has returned from the kernel while its warpgroup waits for it,
/// or without waiting for its own wgmmas.
void check_warpgroup_left(const Thread &);

}  // namespace mp::host::engine
