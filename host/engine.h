// The CPU simulator: runs the thread blocks of a grid on the CPU.
//
// Every thread of a block is a fiber, and fibers switch only where a thread waits for others: in
// barriers and warp collectives.  The blocks of a cluster run together on one OS thread, and clusters
// are spread over OS threads; a grid without clusters is one of clusters of one block.  The shared
// memory of a block is an arena with guard zones, filled with NaN patterns before the block starts; a
// variable has the same offset in every arena of the cluster.
//
// There are two modes.  Plain runs the lanes in order and performs copies at once, as fast as it can.
// Strict runs a seeded random schedule, performs asynchronous operations as late or as early as the
// rules allow, and checks all guard zones.  In both modes a barrier or collective that cannot complete
// is an error, not a hang, and the error names the kernel lines and what is missing.
//
// Environment: MP_HOST_MODE=plain|strict, MP_HOST_SEED=N, MP_HOST_THREADS=N (OS threads).
//
// This file is what the host bodies of the primitives (simt.h, wmma.h, sm80.h, sm90.h) call.  Launches
// and failures are in engine.cpp, the choice of the next thread is in scheduler.h, fibers are in
// fiber.h, the state of threads, warps and blocks is in threads.h and cluster_state.h.  block_sync and
// the warp collectives are in collectives.cpp, cluster_sync and the addresses in a cluster in
// cluster.cpp, mbarriers and named barriers in barriers.cpp, cp.async in async_copy.cpp, TMA in
// tma.cpp, wgmma in warpgroup.cpp and wgmma.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/mode.h"
#include "host/threads.h"

namespace mp::host::engine {

/// The thread that runs now.  Fibers never change their OS thread.
extern constinit thread_local Thread *current;

/// The same, for kernels.  To a kernel the answer is the same from its first line to its last, and
/// gnu::const says so, as glibc does of the address of errno: the compiler calls this once ahead of a
/// loop, not in it.  The simulator changes `current`, so its own code must read that instead.
[[gnu::const]] Thread &this_thread() noexcept;

// ------------------------------------------------------------------ for the primitives

/// Stops the launch and reports "kernel: block b thread t <text> [at <where>]".  The stack of the
/// running thread is abandoned, not unwound: neither kernels nor callers may own memory on it.
[[noreturn, gnu::format(printf, 2, 3)]] void violation(source_location, const char *format, ...);

/// A few words of a report.  It owns no memory, because violation() abandons the stack it may be on.
struct Text {
  char text[192];
};
[[gnu::format(printf, 1, 2)]] Text words(const char *format, ...);

/// "file.cpp:12", the file without its folders.
Text file_and_line(const source_location &);
bool same_line(const source_location &, const source_location &);

// Primitives that are called often take the running thread as an argument, because the kernel has it
// at hand; the others look it up.

/// block_sync: waits for all threads of the block that have not returned.
void block_barrier(Thread &me, source_location);

/// A collective of all lanes of the warp.  The last to arrive runs `combine` (may be NULL) on the
/// values that the lanes left in warp.value and warp.source; then all go on and find warp.result.
void warp_collective(Thread &me, const char *collective, void (*combine)(Warp &), source_location);

/// Lets other threads run until one of them wakes this one.  `waits_in` names the primitive.
void block_until_woken(Thread &me, const char *waits_in, source_location, WaitsFor = {});
void wake(Warp &, uint32_t lanes);

/// A place where, in the strict mode, other threads may run first.  Barrier operations that do not
/// block call it, so that other threads also run between them and the accesses around them.
void may_switch(source_location);

/// The block's copy of a shared variable; the first thread that asks allocates it.
void *shared_variable(const void *key, const char *name, size_t bytes, size_t alignment,
                      source_location = source_location::current());

/// A violation if the running thread has yet to wait for the kernels before its own.
void check_may_use_gmem(const char *primitive, source_location);

/// cp.async of the running thread, see sm80.h.
void start_copy(void *smem, const void *gmem, int valid_bytes, source_location);
void wait_for_copies(int64_t pending_groups);

/// True if the asynchronous operation that is being started should be performed later.
bool defer_copy();

// ------------------------------------------------------------------ addresses in shared memory

/// The low 24 bits are an offset in the arena of a block, which is aligned to 1024 bytes.  The high 8
/// bits are 0 for the block that uses the address, or 1 + the rank of the block that in_block mapped it
/// to.
using SmemAddress = uint32_t;

/// True if in_block returned it.
bool is_mapped(SmemAddress);
uint32_t offset_in_arena(SmemAddress);

/// The block that an address is in: the running thread's, or another one of its cluster.  A violation
/// if that block has returned.
Block &block_of(SmemAddress, const char *primitive, source_location);

/// The memory at an address.  A violation unless the whole range lies in one variable.
std::byte *smem_at(SmemAddress, size_t bytes, const char *primitive, source_location);
/// The same, for an address in that block.
std::byte *smem_at(const Block &, SmemAddress, size_t bytes, const char *primitive,
                   source_location);

/// The running thread has written shared memory through the generic proxy.  The async proxy (TMA,
/// wgmma) may use it after that thread's async_proxy_fence.
void note_generic_write(const Thread &me, SmemAddress, size_t bytes);

/// complete_tx: an asynchronous operation has brought bytes that the current phase expects.
void mbarrier_complete_tx(SmemAddress, uint32_t bytes, source_location);

// ------------------------------------------------------------------ launch

struct Grid {
  const char *kernel;
  int64_t num_blocks;
  int num_threads;
  int cluster;  ///< blocks per cluster
  size_t dynamic_smem_bytes;
  bool uses_pdl;  ///< its threads must call wait_for_previous_kernel
  int max_workers;
  void (*body)(const void *arguments);
  const void *arguments;
};

/// Runs the whole grid; returns when it has finished.  Throws TargetError where a kernel breaks a rule of the programming
/// model: it deadlocks, lacks a lane in a collective, writes outside its shared variables, is launched wrongly and so on.
void run(const Grid &);

/// Frees the workers, and the stacks and shared memory of all OS threads; the next launch gets
/// others.
void release_idle();

}  // namespace mp::host::engine
