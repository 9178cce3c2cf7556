// Events that the simulator reports to the race detector; no-ops without MP_RACE.
//
// With MP_RACE, kernels are compiled with -fsanitize=thread, only for its instrumentation: every
// load and store calls a __tsan_ function, which race/runtime.cpp defines instead of the
// sanitizer's runtime.  The simulator itself is not instrumented; it reports the accesses of an
// asynchronous operation here when a thread issues it.
//
// `code` is the location in the kernel: __builtin_return_address(0) of the primitive.
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

/// Tracks the memory of allocate() and release(), which kernels share with other kernels.
void gmem_allocated(const void *address, size_t bytes);
void gmem_released(const void *address);

void begin_cluster(const Cluster &);

/// Orders all earlier accesses of these warps before all later ones.
void join(const Warp *warps, size_t num_warps);

// ---- cp.async of the running thread
void copy_started(const void *smem, size_t bytes, const void *code);
/// Records that the thread's copies in groups below this number are complete.
void copies_landed(int64_t groups);

// ---- mbarriers and named barriers: arrivals release, waits acquire.  Waits are reported before
// the thread sleeps, and phase completion before the sleeping threads are woken.
void mbarrier_initialized(const Mbarrier &);
void mbarrier_arrived(const Mbarrier &);
void mbarrier_completed(const Mbarrier &);
void mbarrier_waited(const Mbarrier &);
void named_barrier_arrived(const NamedBarrier &);
void named_barrier_completed(const NamedBarrier &);

// ---- TMA: loads complete with the current phase of their mbarrier; reads of stores belong to bulk
// groups of the running thread, counted from 0
void tma_load_started(SmemAddress bar, const void *smem, size_t bytes, const void *code);
void tma_store_started(const void *smem, size_t bytes, int64_t group, const void *code);
/// Records that the thread's stores in groups below this number have read their source.
void tma_stores_read(int64_t groups);
/// fence.proxy.async: makes earlier writes of the thread visible to asynchronous operations.
void async_proxy_fenced();

// ---- wgmma: reads by the running warpgroup, reported when all its threads have issued it
void wgmma_started(const void *smem, size_t bytes, int64_t group, const void *code);
/// Records that the thread has waited for its warpgroup's wgmmas in groups below this number.
void wgmma_done(int64_t groups);

#else

inline void gmem_allocated(const void *, size_t) {}
inline void gmem_released(const void *) {}
inline void begin_cluster(const Cluster &) {}
inline void join(const Warp *, size_t) {}
inline void copy_started(const void *, size_t, const void *) {}
inline void copies_landed(int64_t) {}
inline void mbarrier_initialized(const Mbarrier &) {}
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
