// The warpgroups of a block in the simulator: their wgmmas and their registers.
//
// The n-th wgmma of each of the 128 threads is one operation; it is fully issued when the last of the
// threads has issued it.  It is performed when a wait requires it or, in the strict mode, perhaps as
// soon as it is fully issued.  Threads wait for each other in wgmma_wait only.
//
// From the first wgmma on a set of accumulators to the wait that retires the last one, the fragments d
// of the 128 threads are one matrix of the warpgroup.  A thread hands its fragment over when it issues,
// and takes it back in its wait; in between its d is NaN.  So a kernel cannot see a result that it has
// not waited for, and a chain of multiplications keeps its sums in one place.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "host/engine.h"
#include "host/wgmma_arithmetic.h"

namespace mp::host::engine {

constexpr int kWarpgroupThreads = 128;
constexpr int kWarpsPerWarpgroup = kWarpgroupThreads / kWarpSize;

// These are called by the running thread, see sm90_wgmma.h.
void wgmma_issue(Thread &, const WgmmaOperands &, float *d, source_location);
void wgmma_fence(const Thread &, source_location);
void wgmma_commit(const Thread &, source_location);
void wgmma_wait(Thread &, int pending_groups, source_location);

/// setmaxnreg: changes the registers per thread of the running warpgroup.
enum class RegisterChange { claim, release };
void change_registers(Thread &, RegisterChange, int wanted, source_location);

// ------------------------------------------------------------------ state

/// The accumulators of a warpgroup while wgmmas work on them.
struct AccumulatorTile {
  alignas(64) float d[kWgmmaM * kWgmmaMaxN];  ///< row-major, n columns
  int num_bound = 0;                          ///< threads that have not taken their fragment back
};

struct WgmmaOperation {
  WgmmaOperands operands;
  AccumulatorTile *tile;
  int64_t group;
  int arrived;  ///< threads that have issued it
  bool binds;   ///< it is the first one on its accumulators
  bool is_performed;
  source_location at;
};

/// Accumulators of one thread that are in flight.
struct WgmmaBinding {
  float *d;
  AccumulatorTile *tile;
  int n;
  int64_t group;       ///< of the last wgmma on them
  source_location at;  ///< of that wgmma
};

struct WgmmaThread {
  int64_t issued = 0;  ///< operations
  int64_t group = 0;   ///< commits
  bool is_fenced = false;
  std::vector<WgmmaBinding> bound;
};

/// Registers of the threads of a warpgroup, and the setmaxnreg in progress.
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
  static constexpr int64_t kSlots = 64;  ///< how far one thread may be ahead of the others

  WgmmaThread threads[kWarpgroupThreads];
  WgmmaOperation operations[kSlots];          ///< number i is in slot i % kSlots
  int64_t begun = 0;                          ///< operations that some thread has issued
  int64_t performed = 0;                      ///< operations below this number
  uint32_t waiting[kWarpsPerWarpgroup] = {};  ///< lanes, by warp
  RegisterState registers;

  WgmmaOperation &operation(int64_t number) { return operations[number % kSlots]; }
};

/// Those of one block.
struct Warpgroups {
  std::vector<Warpgroup> all;                           ///< empty until the first use
  int free_registers = 0;                               ///< released and not claimed
  std::vector<std::unique_ptr<AccumulatorTile>> tiles;  ///< kept from block to block
  WgmmaScratch scratch;

  void begin_block();
};

/// As warpgroup_of, at the first use of a warpgroup by the block.
Warpgroup &begin_warpgroups(const Thread &, const char *primitive, source_location);

/// The warpgroup of the running thread.
inline Warpgroup &warpgroup_of(const Thread &thread, const char *primitive, source_location where) {
  std::vector<Warpgroup> &all = thread.block->warpgroups->all;
  const size_t index = static_cast<size_t>(thread.index) / kWarpgroupThreads;
  return index < all.size() ? all[index] : begin_warpgroups(thread, primitive, where);
}

/// A violation if a thread of its warpgroup has returned from the kernel.
void check_warpgroup_complete(const Thread &, const char *primitive, source_location);

/// The running thread sleeps until `wake_all`.
void block_in_warpgroup(Thread &, Warpgroup &, const char *waits_in, source_location,
                        const WaitsFor &);
void wake_all(const Block &, Warpgroup &);

inline int index_in_warpgroup(const Thread &thread) {
  return thread.index % kWarpgroupThreads;
}

/// A thread has returned from the kernel: a violation if its warpgroup still waits for it, or if it
/// has not waited for its own wgmmas.
void check_warpgroup_left(const Thread &);

}  // namespace mp::host::engine
