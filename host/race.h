// The events that the simulator reports to the race detector.  Compiles to nothing unless MP_RACE.
//
// A build with MP_RACE compiles the kernels with -fsanitize=thread, for its instrumentation alone:
// every load and store calls a __tsan_ function, and race/runtime.cpp defines those functions instead
// of the sanitizer's library.  The simulator itself is not instrumented.  What it reads and writes
// for an asynchronous operation is reported here when a thread starts the operation.
//
// `code` is the place in the kernel, __builtin_return_address(0) of the primitive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/engine.h"

namespace mp::host::engine {
struct Mbarrier;
struct NamedBarrier;
}  // namespace mp::host::engine

namespace mp::host::engine::race {

#if MP_RACE

/// What allocate() gave out, and release() took back: the memory that kernels share with other kernels.
void gmem_allocated(const void *address, size_t bytes);
void gmem_released(const void *address);

void begin_cluster(const Cluster &);

/// What any thread of these warps did so far happens before what any of them does next.
void join(const Warp *warps, size_t num_warps);

// ---- cp.async of the running thread
void copy_started(const void *smem, size_t bytes, const void *code);
/// All copies that it started in groups below this number have landed.
void copies_landed(int64_t groups);

// ---- mbarriers and named barriers: arrivals release, waits acquire.  A wait is reported before it
// sleeps, and the completion of a phase before the threads that sleep in it are woken.
void mbarrier_initialised(const Mbarrier &);
void mbarrier_arrived(const Mbarrier &);
void mbarrier_completed(const Mbarrier &);
void mbarrier_waited(const Mbarrier &);
void named_barrier_arrived(const NamedBarrier &);
void named_barrier_completed(const NamedBarrier &);

// ---- TMA: loads complete with the current phase of their mbarrier; the reads of stores belong to
// bulk groups of the running thread, counted from 0
void tma_load_started(SmemAddress bar, const void *smem, size_t bytes, const void *code);
void tma_store_started(const void *smem, size_t bytes, int64_t group, const void *code);
/// All stores that the thread started in groups below this number have read their source.
void tma_stores_read(int64_t groups);
/// fence.proxy.async: asynchronous operations see what the running thread wrote before.
void async_proxy_fenced();

// ---- wgmma: reads by the warpgroup of the running thread, all of whose threads have issued it
void wgmma_started(const void *smem, size_t bytes, int64_t group, const void *code);
/// The running thread has waited for all wgmmas of its warpgroup in groups below this number.
void wgmma_done(int64_t groups);

#else

inline void gmem_allocated(const void *, size_t) {}
inline void gmem_released(const void *) {}
inline void begin_cluster(const Cluster &) {}
inline void join(const Warp *, size_t) {}
inline void copy_started(const void *, size_t, const void *) {}
inline void copies_landed(int64_t) {}
inline void mbarrier_initialised(const Mbarrier &) {}
inline void mbarrier_arrived(const Mbarrier &) {}
inline void mbarrier_completed(const Mbarrier &) {}
inline void mbarrier_waited(const Mbarrier &) {}
inline void named_barrier_arrived(const NamedBarrier &) {}
inline void named_barrier_completed(const NamedBarrier &) {}
inline void tma_load_started(SmemAddress, const void *, size_t, const void *) {}
inline void tma_store_started(const void *, size_t, int64_t, const void *) {}
inline void tma_stores_read(int64_t) {}
inline void async_proxy_fenced() {}
inline void wgmma_started(const void *, size_t, int64_t, const void *) {}
inline void wgmma_done(int64_t) {}

#endif

}  // namespace mp::host::engine::race
