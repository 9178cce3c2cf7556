// CPU simulator: runs the thread blocks of a grid on the CPU.
//
// Every GPU thread is a fiber.  Fibers switch only where they wait: in barriers, warp collectives
// and waits for wgmma.  The blocks of a cluster run together on one OS thread, and clusters are
// distributed over OS threads.  Without clusters, every block is a cluster of size 1.  The shared
// memory of a block is an arena with guard zones, filled with NaN patterns before the block starts.
// A variable has the same offset in all arenas of a cluster.
//
// Lanes run in order, and copies are executed immediately.  The simulator assumes that kernels obey
// the rules of the hardware; the software device (softgpu/) checks them.  Two kinds of errors are
// reported, because a program could not continue after them:
//
// - accesses outside shared variables, by guard zones and by the primitives that get addresses
// - barriers and collectives that cannot complete, with the kernel lines and the missing arrivals
//
// Environment: MP_HOST_THREADS=N (OS threads).
//
// This header is the interface for the host bodies of the primitives (simt.h, wmma.h, sm80.h,
// sm90_*.h).  Implementation:
//
//     engine.cpp     launches, failures, choice of the next thread, block_sync, warp collectives
//     fiber.h        fibers
//     cluster.*      state of a cluster, addresses in it, cluster_sync, mbarriers
//     tma.cpp        TMA
//     wgmma.*        wgmma
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <utility>

namespace mp::host {

/// Call site in a kernel; every primitive takes it as a default argument.
using std::source_location;

}  // namespace mp::host

namespace mp::host::engine {

// ------------------------------------------------------------------ state of a cluster

constexpr int kWarpSize = 32;
constexpr int kMaxThreads = 1024;  // per block
constexpr int kMaxWarps = kMaxThreads / kWarpSize;
constexpr int kMaxCluster = 8;                         // blocks; portable limit of sm_90
constexpr int kMaxClusterThreads = kMaxCluster * 384;  // blocks of three warpgroups
constexpr size_t kSmemBytes = 227 * 1024;              // per block on sm_90, the largest so far

struct Fiber;
struct Warp;
struct Block;
struct Cluster;
struct Barriers;
struct Warpgroups;
class Engine;
class SharedMemory;

/// Fragment of a report.  Owns no memory, because violation() abandons the stack.
struct Text {
  char text[192];
};

/// Object of a blocked thread's wait; `describe` names missing arrivals in a deadlock report.
struct WaitsFor {
  const void *object = nullptr;
  Text (*describe)(const void *object) = nullptr;
};

struct alignas(64) Thread {
  Warp *warp;
  Block *block;
  Fiber *fiber;  ///< NULL until first run
  Engine *engine;
  int index;  ///< in the block
  int lane;
  int64_t mma_issued;    ///< mma_sync calls so far, see wmma.h
  const char *waits_in;  ///< primitive in which the thread is blocked, for reports
  source_location waits_at;
  WaitsFor waits_for;
};

/// A deferred warp-wide matrix multiply: the operands of each lane.
struct MmaSlot {
  float *d[kWarpSize];
  const float *a[kWarpSize];
  const float *b[kWarpSize];
  uint32_t arrived;    ///< lanes
  source_location at;  ///< call site of the first lane to arrive
};
constexpr int kMmaSlots = 16;

struct Warp {
  Block *block;
  Thread *lanes;
  int index;       ///< in the block
  int slot;        ///< in the cluster
  uint32_t ready;  ///< lanes that can run now
  uint32_t alive;  ///< lanes that have not returned

  // The collective in progress.
  uint32_t arrived;  ///< lanes
  uint64_t value[kWarpSize];
  uint64_t result[kWarpSize];
  uint8_t source[kWarpSize];

  // Deferred matrix multiplies, executed in order.
  MmaSlot *mma;
  int64_t mma_done;
  uint32_t mma_waiting;  ///< lanes
};

struct Block {
  Cluster *cluster;
  int rank;  ///< in the cluster
  int64_t index;
  int64_t grid_size;
  int num_threads;
  int alive;  ///< threads that have not returned
  Warp *warps;
  SharedMemory *smem;
  void *dynamic_smem;
  Barriers *barriers;      ///< mbarriers, see sm90_barrier.h
  Warpgroups *warpgroups;  ///< wgmma in progress, see sm90_wgmma.h

  // The block_sync in progress.
  int at_barrier;                       ///< threads that wait
  uint32_t barrier_waiting[kMaxWarps];  ///< lanes, by warp

  int num_warps() const { return num_threads / kWarpSize; }
};

/// Blocks that run concurrently and can access each other's shared memory.
struct Cluster {
  Block *blocks;
  int size;
  Warp *warps;
  int num_warps;
  int alive;  ///< threads that have not returned

  // The cluster_sync in progress.
  int at_sync;                                            ///< threads that wait
  uint32_t sync_waiting[kMaxClusterThreads / kWarpSize];  ///< lanes, by slot of the warp
};

/// Running GPU thread.  Fibers never change their OS thread.
extern constinit thread_local Thread *current;

/// Returns the running thread, for kernels.  Its value is constant within a kernel, so gnu::const
/// lets the compiler hoist the call out of loops, like the address of errno in glibc.  The
/// simulator itself changes `current` and must read that variable instead.
[[gnu::const]] Thread &this_thread() noexcept;

// ------------------------------------------------------------------ interface for primitives

/// Stops the launch and reports "kernel: block b thread t <text> [at <where>]".  The stack of the
/// running thread is abandoned, not unwound: neither kernels nor callers may own memory on it.
[[noreturn, gnu::format(printf, 2, 3)]] void violation(source_location, const char *format, ...);

[[gnu::format(printf, 1, 2)]] Text words(const char *format, ...);

/// Returns "tma.cpp:12", without folders.
Text file_and_line(const source_location &);

// Frequently called primitives take the running thread as an argument, because the kernel already
// has it; the others look it up.

/// Implements block_sync: waits for all threads of the block that have not returned.
void block_barrier(Thread &me, source_location);

/// Runs a collective of all lanes of the warp.  The last lane to arrive runs `combine` (may be
/// NULL) on warp.value and warp.source, which the lanes have set.  All lanes then read warp.result.
void warp_collective(Thread &me, const char *collective, void (*combine)(Warp &), source_location);

/// Runs other threads until one of them wakes the caller.  `waits_in` names the primitive.
void block_until_woken(Thread &me, const char *waits_in, source_location, WaitsFor = {});
inline void wake(Warp &warp, uint32_t lanes) {
  warp.ready |= lanes;
}
/// Wakes the lanes in `waiting`, a mask for each of the warps, and clears the masks.
inline void wake_waiting(Warp *warps, int num_warps, uint32_t *waiting) {
  for (int w = 0; w < num_warps; w++) wake(warps[w], std::exchange(waiting[w], 0u));
}

/// Returns the block's copy of a shared variable, which the first caller allocates.
void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                      source_location = source_location::current());

/// Implements copy_async_16: copies `valid_bytes` and clears the rest of the 16 bytes.
void copy_16(void *smem, const void *gmem, int valid_bytes, source_location);

// ------------------------------------------------------------------ addresses in shared memory

/// Shared-memory address.  The low 24 bits are an offset in the arena of a block, which is aligned
/// to 1024 bytes.  The high 8 bits are 0 for the block that uses the address, or 1 + the rank of
/// the block to which in_block mapped it.
using SmemAddress = uint32_t;

/// Returns the block that contains an address: that of the running thread, or another one of its
/// cluster.
Block &block_of(SmemAddress, const char *primitive, source_location);

/// Returns the memory at an address.  Reports a violation unless the range is within one variable.
std::byte *smem_at(SmemAddress, size_t bytes, const char *primitive, source_location);

/// Implements complete_tx: an asynchronous operation has written bytes of the current phase.
void mbarrier_complete_tx(SmemAddress, uint32_t bytes, source_location);

// ------------------------------------------------------------------ launch

struct Grid {
  const char *kernel;
  int64_t num_blocks;
  int num_threads;
  int cluster;  ///< blocks per cluster
  size_t dynamic_smem_bytes;
  int max_workers;
  void (*body)(const void *arguments);
  const void *arguments;
};

/// Runs a grid to completion.  Throws TargetError if the kernel deadlocks or accesses shared memory
/// outside its variables, or if the launch configuration is invalid.
void run(const Grid &);

}  // namespace mp::host::engine
