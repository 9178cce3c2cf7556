// Clusters and barriers of Hopper (sm_90): distributed shared memory, and mbarriers that count
// arrivals and transaction bytes.
//
// Phase n of an mbarrier has parity n % 2.  A phase completes when `arrivals` threads have arrived
// and all bytes expected in it have been transferred; the next phase begins at once.  Accesses of a
// thread before its arrival are visible to threads of its block that have waited for that phase.  A
// wait specifies only the parity, so a thread must begin it before the following phase completes.
//
// One thread initializes an mbarrier: mbarrier_init, mbarrier_init_fence, then block_sync, or
// cluster_sync_relaxed if other blocks use it.  A block must not exit while other blocks of the
// cluster may use its shared memory: before it exits, it must have observed their arrivals and
// writes, and their reads end with cluster_sync_relaxed.
//
// Sources: PTX ISA, "mbarrier", "barrier.cluster", "mapa".  Host bodies: host/cluster.cpp.
#pragma once

#include "kernels/simt/simt.h"

#if MP_UP_TO_SM80
#error UP_TO_SM80 in kernels/cuda.mk names this file, which uses features of sm_90
#endif

namespace mp::MP_TARGET {

#if MP_ON_CUDA

/// Address in the shared::cta window or, if returned by in_block, in the shared::cluster window.
using SmemAddress = uint32_t;

MP_DEVICE SmemAddress smem_address(const void *smem) {
  return static_cast<SmemAddress>(__cvta_generic_to_shared(smem));
}

// ---- clusters; without a cluster launch, every block is a cluster of one
MP_DEVICE int cluster_rank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
MP_DEVICE int cluster_size() {
  uint32_t size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return static_cast<int>(size);
}
/// Barrier of all threads of the cluster; accesses before it are visible to all of them after it.
/// Warps must arrive converged.
MP_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// Waits for all threads of the cluster without ordering their memory accesses, so that no
/// device-wide fence is needed.  Exception: all blocks may then use mbarriers that were initialized
/// before an mbarrier_init_fence.  Remote arrivals before it may still be in flight.
MP_DEVICE void cluster_sync_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/// Returns the address of the same offset in the shared memory of block `rank` of the cluster.
MP_DEVICE SmemAddress in_block(SmemAddress own, int rank) {
  SmemAddress there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
  return there;
}

/// Loads four floats, 16-byte aligned, from any block of the cluster; see in_block.
MP_DEVICE void load_cluster(float (&x)[4], SmemAddress there) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(there)
               : "memory");
}

// ---- mbarriers: 8 bytes in shared memory, aligned to 8
MP_DEVICE void mbarrier_init(SmemAddress bar, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}
MP_DEVICE void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
MP_DEVICE void mbarrier_arrive(SmemAddress bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
/// Arrives at an mbarrier of any block of the cluster; see in_block.  The arrival makes no writes
/// visible to other blocks; it only signals that this thread's reads through the async proxy are
/// complete.  release.cluster would cost a MEMBAR.ALL.GPU per arrival, in the main loop.
MP_DEVICE void mbarrier_arrive_cluster(SmemAddress bar) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}
/// Arrives, and adds `bytes` to the transaction count of the current phase.
MP_DEVICE void mbarrier_arrive_expect(SmemAddress bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}
/// Waits until the phase of the given parity, 0 or 1, has completed.  The wait acquires at CTA
/// scope, the default, even if threads of other blocks arrive, like CUTLASS (ClusterBarrier::wait).
MP_DEVICE void mbarrier_wait(SmemAddress bar, uint32_t parity) {
  uint32_t completed;
  do {
    asm volatile(
        "{\n"
        "  .reg .pred p;\n"
        "  mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, p;\n"
        "}"
        : "=r"(completed)
        : "r"(bar), "r"(parity)
        : "memory");
  } while (completed == 0);
}

#else

using engine::SmemAddress;

inline int cluster_rank() {
  return engine::this_thread().block->rank;
}
inline int cluster_size() {
  return engine::this_thread().block->cluster->size;
}

SmemAddress smem_address(const void *smem);
void cluster_sync(source_location = source_location::current());
inline void cluster_sync_relaxed(source_location where = source_location::current()) {
  cluster_sync(where);
}
SmemAddress in_block(SmemAddress own, int rank);
inline void load_cluster(float (&x)[4], SmemAddress there,
                         source_location where = source_location::current()) {
  std::memcpy(x, engine::smem_at(there, sizeof x, "load_cluster", where), sizeof x);
}

void mbarrier_init(SmemAddress bar, int arrivals, source_location = source_location::current());
inline void mbarrier_init_fence() {}
void mbarrier_arrive(SmemAddress bar, source_location = source_location::current());
void mbarrier_arrive_cluster(SmemAddress bar, source_location = source_location::current());
void mbarrier_arrive_expect(SmemAddress bar, uint32_t bytes,
                            source_location = source_location::current());
void mbarrier_wait(SmemAddress bar, uint32_t parity, source_location = source_location::current());

#endif

}  // namespace mp::MP_TARGET
