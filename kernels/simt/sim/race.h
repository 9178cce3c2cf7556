// What the engine tells the race detector.  Compiles to nothing unless MP_RACE.
//
// A build with MP_RACE compiles the kernels with -fsanitize=thread, for its instrumentation alone:
// every load and store calls a __tsan_ function, and race/runtime.cpp answers those calls instead
// of the sanitizer's library.  The engine itself is not instrumented: what it reads and writes for
// an asynchronous operation is told here, by the thread that starts it and when it starts it.
//
// `code` is the place in the kernel, __builtin_return_address(0) of the primitive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simt/sim/engine.h"

namespace mp::host::engine {
struct Mbarrier;
struct NamedBarrier;
}  // namespace mp::host::engine

namespace mp::host::engine::race {

#if MP_RACE

void begin_cluster(const Cluster &);

/// What the living threads of these warps did before is ordered before what they do after.
void join(const Warp *warps, size_t num_warps);

// ---- cp.async of the running thread
void copy_started(const void *smem, size_t bytes, const void *code);
/// All copies that it started in groups below this number have landed.
void copies_landed(int64_t groups);

// ---- mbarriers and named barriers: arrivals release, waits acquire.  A wait that sleeps is told
// before; the completion, before the barrier lets it go.
void mbarrier_initialised(const Mbarrier &);
void mbarrier_arrived(const Mbarrier &);
void mbarrier_completed(const Mbarrier &);
void mbarrier_waited(const Mbarrier &);
void named_barrier_arrived(const NamedBarrier &);
void named_barrier_completed(const NamedBarrier &);

// ---- TMA: loads land with the phase in progress of their mbarrier; the reads of stores belong to
// bulk groups of the running thread, counted from 0
void tma_load_started(SmemAddress bar, const void *smem, size_t bytes, const void *code);
void tma_store_started(const void *smem, size_t bytes, int64_t group, const void *code);
/// All stores that the thread started in groups below this number have read their source.
void tma_stores_read(int64_t groups);
/// fence.proxy.async: asynchronous operations see what the running thread wrote before.
void async_proxy_fenced();

// ---- wgmma: reads by the warpgroup of the running thread, which has issued it in all its lanes
void wgmma_started(const void *smem, size_t bytes, int64_t group, const void *code);
/// All multiplies of the warpgroup in groups below this number are done, which the running thread
/// has waited for.
void wgmma_done(int64_t groups);

#else

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
