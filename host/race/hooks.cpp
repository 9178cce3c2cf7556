// Implementation of race.h: forwards events to the detector of the running OS thread, and records
// device memory, which the detector distinguishes from the simulator's own memory.
#include "host/race.h"

#include <map>
#include <mutex>

#include "host/barriers.h"
#include "host/race/detector.h"

namespace mp::host::engine::race {

void begin_cluster(const Cluster &cluster) {
  static thread_local Detector detector_of_this_thread;
  detector = &detector_of_this_thread;
  detector->begin_cluster(cluster);
}
void join(const Warp *warps, size_t num_warps) {
  detector->join(warps, num_warps);
}

void copy_started(const void *smem, size_t bytes, const void *code) {
  detector->copy_started(smem, bytes, code);
}
void copies_landed(int64_t groups) {
  detector->completed(Agent::copies, groups);
}

void mbarrier_initialized(const Mbarrier &bar) {
  detector->initialized(bar);
}
void mbarrier_arrived(const Mbarrier &bar) {
  detector->arrived(bar);
}
void mbarrier_completed(const Mbarrier &bar) {
  detector->completed(bar);
}
void mbarrier_waited(const Mbarrier &bar) {
  detector->waited(bar);
}
void named_barrier_arrived(const NamedBarrier &bar) {
  detector->arrived(bar);
}
void named_barrier_completed(const NamedBarrier &bar) {
  detector->completed(bar);
}

/// Ignores an address without an mbarrier: it is reported when the load completes.
void tma_load_started(SmemAddress bar, const void *smem, size_t bytes, const void *code) {
  if (const Mbarrier *const mbarrier = find_mbarrier(bar); mbarrier != nullptr)
    detector->load_started(*mbarrier, smem, bytes, code);
}
void tma_store_started(const void *smem, size_t bytes, int64_t group, const void *code) {
  detector->store_started(smem, bytes, group, code);
}
void tma_stores_read(int64_t groups) {
  detector->completed(Agent::stores, groups);
}
void async_proxy_fenced() {
  detector->fenced();
}

void wgmma_started(const void *smem, size_t bytes, int64_t group, const void *code) {
  detector->multiply_started(smem, bytes, group, code);
}
void wgmma_done(int64_t groups) {
  detector->completed(Agent::multiplies, groups);
}

// ---------------------------------------------------------------------------- device memory

namespace {

struct Allocations {
  std::mutex mutex;
  std::map<const std::byte *, size_t> bytes_at;
};
Allocations &allocations() {
  static Allocations all;
  return all;
}

}  // namespace

void gmem_allocated(const void *address, size_t bytes) {
  const std::lock_guard lock(allocations().mutex);
  allocations().bytes_at[static_cast<const std::byte *>(address)] = bytes;
}
void gmem_released(const void *address) {
  const std::lock_guard lock(allocations().mutex);
  allocations().bytes_at.erase(static_cast<const std::byte *>(address));
}

bool is_gmem(const void *address) {
  const std::byte *const byte = static_cast<const std::byte *>(address);
  const std::lock_guard lock(allocations().mutex);
  const auto next = allocations().bytes_at.upper_bound(byte);
  if (next == allocations().bytes_at.begin()) return false;
  const auto [begin, bytes] = *std::prev(next);
  return byte < begin + bytes;
}

}  // namespace mp::host::engine::race
