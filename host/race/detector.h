// Data race detector for shared memory, based on the happens-before relation.
//
// One of two conflicting accesses must happen before the other.  They are ordered by:
//
//   block_sync, cluster_sync, warp_sync   join the clocks of their threads
//   mbarrier, named barrier               arrive releases; wait acquires all releases up to the
//                                         end of the phase
//   copy_async_wait, tma_store_wait_read  order a thread's own copies and stores before its later
//                                         accesses
//   wgmma_wait                            likewise orders the warp's part of its warpgroup's wgmmas
//
// Shuffles and WMMA functions do not order memory.  An access of a WMMA function belongs to the
// lane that holds the element in the simulator.
//
// An asynchronous operation may read and write as soon as it is issued, so all conflicting accesses
// must happen before its issue: as seen by the issuing thread or, for wgmma, by every thread of the
// warpgroup.  A TMA load happens before all accesses of a thread after its wait for the load's
// mbarrier phase.  TMA stores and wgmma read through the async proxy, so a write by a thread must
// also be followed by an async_proxy_fence, of that thread or of a thread that the write happens
// before.
//
// The detector is exact, except for:
//
// - wgmma: order is evaluated when the last thread of the warpgroup issues it.  Other threads may
//   have synchronized since they issued it.  Every warp counts as a reader of all of A.
// - mbarriers: initialization must happen before use; other accesses to their words are not
//   checked.
// - gmem: the only check is that a kernel launched with PDL does not access it before its wait for
//   the previous kernels.
// - not checked: fences after cp.async, and bytes within a 2-byte element.
//
// Source: Flanagan & Freund, FastTrack, PLDI 2009.  Epochs are those of FastTrack, but
// every concurrent reader is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "host/barriers.h"
#include "host/engine.h"
#include "host/race/happens_before.h"

namespace mp::host::engine::race {

enum class Access { read, write };

constexpr size_t kGranuleBytes = 2;  // smallest element of a kernel

bool is_gmem(const void *address);

class Detector {
 public:
  void begin_cluster(const Cluster &);
  void join(const Warp *warps, size_t num_warps) { happens_before_.join(warps, num_warps); }

  // Events of the running thread.
  void access(const void *address, size_t bytes, Access, const void *code);
  void copy_started(const void *smem, size_t bytes, const void *code);
  void load_started(const Mbarrier &, const void *smem, size_t bytes, const void *code);
  void store_started(const void *smem, size_t bytes, int64_t group, const void *code);
  void multiply_started(const void *smem, size_t bytes, int64_t group, const void *code);
  void completed(Agent, int64_t groups);
  void fenced();

  void initialized(const Mbarrier &);
  void arrived(const Mbarrier &);
  void completed(const Mbarrier &);
  void waited(const Mbarrier &);
  void arrived(const NamedBarrier &);
  void completed(const NamedBarrier &);

  /// Reports a violation if the address is in gmem: the thread has not called
  /// wait_for_previous_kernel.
  static void early_access(const void *address, Access, const void *code);

  bool covers(const void *address) const { return arena_of(address) < arenas_.size(); }

 private:
  struct Reader {
    Epoch epoch;
    uint32_t next;
  };
  struct Granule {
    Epoch write;
    uint32_t readers;  ///< reads since that write: index into readers_; 0 ends the list
  };
  /// Shared memory of one block.
  struct Arena {
    const std::byte *begin;
    std::vector<Granule> granules;
    size_t used;
  };
  struct MbarrierState {
    Epoch initialized;
    BarrierClock released;
    SharedClock phase_clock;  ///< clock at completion of the last phase
  };
  struct Operation {
    Epoch epoch;
    Access access;
    HappensBefore::Observer observer;  ///< conflicting accesses must have happened before it
    bool needs_fence = false;
  };

  HappensBefore::Observer running() const;
  Epoch epoch_of_thread(const void *code) const;
  void check_range(const void *address, size_t bytes, const Operation &);
  void check(const Arena &, Granule &, const Operation &);
  void add_reader(Granule &, const Operation &);
  void forget_readers(Granule &);
  /// Returns the index of the arena, or arenas_.size() if there is none.
  size_t arena_of(const void *address) const {
    size_t i = 0;
    while (i < arenas_.size() && offset_in(arenas_[i], address) >= arena_bytes_) i++;
    return i;
  }
  static size_t offset_in(const Arena &arena, const void *address) {
    return static_cast<size_t>(static_cast<const std::byte *>(address) - arena.begin);
  }
  MbarrierState &state_of(const Mbarrier &);
  void check_initialized(const Mbarrier &);
  void acquire(const Block &, const uint32_t *waiting, const SharedClock &clock);
  BarrierClock &released_at(const NamedBarrier &);

  std::string thread_name(uint32_t thread) const;
  std::string mbarrier_name(uint32_t id) const;
  std::string actor(const Epoch &) const;
  std::string place(const Arena &, const Granule &) const;
  [[noreturn]] void report_race(const Arena &, const Granule &, const Operation &,
                                const Epoch &before, Access access_before) const;
  [[noreturn]] void report_unfenced(const Arena &, const Granule &, const Operation &) const;
  [[noreturn]] void report_initialization(const Mbarrier &, const Epoch &) const;

  const Cluster *cluster_ = nullptr;
  HappensBefore happens_before_;
  std::vector<Arena> arenas_;
  size_t arena_bytes_ = 0;
  std::vector<Reader> readers_;
  uint32_t free_readers_ = 0;
  std::vector<MbarrierState> mbarriers_;
  std::vector<BarrierClock> named_barriers_;  ///< [block][id]
};

/// Detector of this OS thread's engine; NULL before its first cluster.
extern constinit thread_local Detector *detector;

}  // namespace mp::host::engine::race
