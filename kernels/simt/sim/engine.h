// The CPU simulator: runs a grid of CUDA-style blocks on the CPU.
//
// Every thread of a block is a fiber, and fibers switch only in barriers and warp collectives, where
// a thread waits for others.  The blocks of a cluster run together on one OS thread, and
// clusters are spread over OS threads; a grid without clusters is one of clusters of one block.
// The shared memory of a block is an arena with guard zones, filled with NaN patterns before each
// block; a variable has the same offset in every arena of the cluster.
//
// Two modes.  Plain: lanes run in order and copies happen at once, as fast as it can.  Strict: a
// seeded random schedule, asynchronous operations happen as late or as early as the rules allow,
// guard zones are checked.  In both, a barrier or collective that cannot complete is an
// error, not a hang; the error names the kernel lines and what is missing.
//
// Environment: MP_HOST_MODE=plain|strict, MP_HOST_SEED=N, MP_HOST_THREADS=N (OS threads).
//
// This file is what the host bodies of the primitives (simt.h, wmma.h, sm80.h, sm90.h) are written
// against.  The scheduler itself is in engine.cpp, fibers are in fiber.h, block_sync and the
// warp collectives in collectives.cpp, addresses in a cluster and its barrier in cluster.cpp, all other barriers
// in barriers.cpp, cp.async in async_copy.cpp, TMA in tma.cpp, wgmma in warpgroup.cpp and wgmma.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "kernels/simt/sim/mode.h"
#include "kernels/simt/sim/threads.h"

namespace mp::host::engine {

/// A kernel broke a rule of the programming model: deadlock, missing lane, guard zone, bad launch.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The thread that runs now.  Fibers never change their OS thread.
extern constinit thread_local Thread *current;

/// The same, for kernels.  Asking is a call, and to a kernel the answer is one from its first line to
/// its last, which gnu::const says, as glibc does of the address of errno: the compiler asks ahead of
/// a loop, not in it.  The simulator itself changes `current` and so reads that.
[[gnu::const]] Thread &this_thread() noexcept;

// ------------------------------------------------------------------ for the primitives

/// Stop the block and report "kernel: block b thread t <text> [at <where>]".  The stack of the
/// running thread is left for good, not unwound: neither kernels nor callers may own memory on it.
[[noreturn, gnu::format(printf, 2, 3)]] void violation(source_location, const char *format, ...);

/// A few words of a report.  Owns no memory, as it may be on a stack that a violation leaves.
struct Text {
  char text[96];
};

/// "file.cpp:12", the file without its folders.
Text file_and_line(const source_location &);
bool same_line(const source_location &, const source_location &);

// Primitives that many threads call often are handed the running thread, which a kernel has at hand;
// the others look it up.

/// block_sync: waits for all threads of the block that have not returned.
void block_barrier(Thread &me, source_location);

/// A collective of all lanes of the warp.  The last to arrive runs `combine` (may be NULL) on the
/// values that the lanes left in warp.value and warp.source; then all go on and find warp.result.
void warp_collective(Thread &me, const char *collective, void (*combine)(Warp &), source_location);

/// cluster_sync: waits for all threads of the cluster that have not returned.  The lanes of a warp
/// must call it on the same line.
void cluster_barrier(source_location);

/// Give up the processor until some other lane wakes this one.
void block_until_woken(Thread &me, const char *waits_in, source_location, WaitsFor = {});
void wake(Warp &, uint32_t lanes);

/// A place where, in the strict mode, others may run first.  Barriers on which a thread need not
/// sleep call it, so that what it does just before or after one is seen too late or too early.
void may_switch(source_location);

/// The block's copy of a shared variable; the first thread to come allocates it.
void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                      source_location = source_location::current());

/// cp.async of the running thread, see sm80.h.
void start_copy(void *smem, const void *gmem, int valid_bytes, source_location);
void wait_for_copies(int64_t pending_groups);

/// True if this asynchronous operation should be kept for later.
bool defer_copy();

/// Keeps an operation until the strict mode wants it performed: at a random switch, or when nothing
/// else can run, which is also at the end of the cluster.
void keep_async(std::function<void()> operation);

/// An operation that is performed by the hardware on its own, at once or later.  It finds `current` as the
/// thread that started it, and must not block.  Operations are not performed in order.
template <class Operation>
void start_async(const Operation &operation) {
  if (defer_copy())
    keep_async(operation);
  else
    operation();
}

// ------------------------------------------------------------------ addresses in shared memory

/// An offset in the arena of a block, which is aligned to 1024 bytes, in the low 24 bits.  Above
/// them 0, for the block that uses the address, or 1 + the rank of the block it was mapped to.
using SmemAddress = uint32_t;

SmemAddress smem_address(const void *smem, source_location);

/// The same place in the block of that rank.
SmemAddress in_block(SmemAddress own, int rank, source_location);

/// True for what in_block returned.
bool is_mapped(SmemAddress);
uint32_t offset_in_arena(SmemAddress);

/// The block an address is in: that of the running thread, or of its cluster.  It may have
/// returned, which is an error.
Block &block_of(SmemAddress, const char *primitive, source_location);

/// The memory at an address.  All of the range must lie in one variable.
std::byte *smem_at(SmemAddress, size_t bytes, const char *primitive, source_location);
/// The same, for an address in that block.
std::byte *smem_at(const Block &, SmemAddress, size_t bytes, const char *primitive,
                   source_location);

/// The running thread writes shared memory by ordinary means.  TMA may use it after its
/// async_proxy_fence.
void note_generic_write(const Thread &me, SmemAddress, size_t bytes);

// ------------------------------------------------------------------ barriers, see sm90_barrier.h

void mbarrier_init(SmemAddress, int arrivals, source_location);
void mbarrier_init_fence();
void mbarrier_arrive(SmemAddress, source_location);
void mbarrier_arrive_cluster(SmemAddress, source_location);
void mbarrier_arrive_expect(SmemAddress, uint32_t bytes, source_location);
void mbarrier_wait(SmemAddress, uint32_t parity, source_location);
void named_barrier_sync(int id, int threads, source_location);
void named_barrier_arrive(int id, int threads, source_location);

/// Bytes that a phase of an mbarrier expects have come, in an asynchronous operation.
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

/// Runs the whole grid; returns when it has finished.  Throws Violation.
void run(const Grid &);

}  // namespace mp::host::engine
