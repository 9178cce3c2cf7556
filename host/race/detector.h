// Detects data races in shared memory by the happens-before relation.
//
// Of two conflicting accesses one must happen before the other.  What orders them:
//
//   block_sync, cluster_sync, warp_sync   join the clocks of their threads
//   mbarrier, named barrier               an arrive releases; a wait acquires what was released by
//                                         the end of the phase
//   copy_async_wait, tma_store_wait_read  order a thread's own copies and stores before what it
//                                         does next
//   wgmma_wait                            likewise the share of its warp in its warpgroup's wgmmas
//
// Shuffles order no memory.  Nor do the WMMA functions; an access of theirs counts as one of the
// lane that holds the element in the simulator.
//
// An asynchronous operation may read and write as soon as it is started, so all that it conflicts
// with must happen before its start: in the order that the starting thread sees or, for wgmma, that
// every thread of the warpgroup sees.  A TMA load happens before what a thread does after it has
// waited for the mbarrier phase in which the load was started.  TMA stores and wgmma read through
// the async proxy, so a write by a thread must also be followed by an async_proxy_fence: of that
// thread, or of one that the write happened before.
//
// The detector is exact, with these limits.
//   wgmma       The order is taken when the last thread of the warpgroup has issued it, when others
//               may have synchronised since they did.  Every warp counts as reading all of A.
//   mbarriers   That their initialisation happens before their use is checked; other accesses to
//               their words are not.
//   gmem        Only that a kernel which starts early touches none before it has waited for the kernels
//               ahead of it.
//   not checked at all: fences after cp.async, and the bytes within one 2-byte element
//
// Source: Flanagan & Freund, FastTrack, PLDI 2009.  Epochs are as there, but every concurrent reader
// is kept.
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

constexpr size_t kGranuleBytes = 2;  // the smallest element of a kernel

bool is_gmem(const void *address);

class Detector {
 public:
  void begin_cluster(const Cluster &);
  void join(const Warp *warps, size_t num_warps) { happens_before_.join(warps, num_warps); }

  // What the running thread does.
  void access(const void *address, size_t bytes, Access, const void *code);
  void copy_started(const void *smem, size_t bytes, const void *code);
  void load_started(const Mbarrier &, const void *smem, size_t bytes, const void *code);
  void store_started(const void *smem, size_t bytes, int64_t group, const void *code);
  void multiply_started(const void *smem, size_t bytes, int64_t group, const void *code);
  void completed(Agent, int64_t groups);
  void fenced();

  void initialised(const Mbarrier &);
  void arrived(const Mbarrier &);
  void completed(const Mbarrier &);
  void waited(const Mbarrier &);
  void arrived(const NamedBarrier &);
  void completed(const NamedBarrier &);

  /// An access of a thread that has not waited for the kernels before its own: a violation in gmem.
  static void early_access(const void *address, Access, const void *code);

  bool covers(const void *address) const { return arena_of(address) < arenas_.size(); }

 private:
  struct Reader {
    Epoch epoch;
    uint32_t next;
  };
  struct Granule {
    Epoch write;
    uint32_t readers;  ///< since that write; index into readers_, 0 ends the list
  };
  /// The shared memory of one block.
  struct Arena {
    const std::byte *begin;
    std::vector<Granule> granules;
    size_t used;
  };
  struct MbarrierState {
    Epoch initialised;
    BarrierClock released;
    SharedClock phase_clock;  ///< when its last phase completed
  };
  struct Operation {
    Epoch epoch;
    Access access;
    HappensBefore::Observer
        observer;  ///< what conflicts must have happened before what this one does
    bool needs_fence = false;
  };

  HappensBefore::Observer running() const;
  Epoch epoch_of_thread(const void *code) const;
  void check_range(const void *address, size_t bytes, const Operation &);
  void check(const Arena &, Granule &, const Operation &);
  void add_reader(Granule &, const Operation &);
  void forget_readers(Granule &);
  /// arenas_.size() if it is in none.
  size_t arena_of(const void *address) const {
    size_t i = 0;
    while (i < arenas_.size() && offset_in(arenas_[i], address) >= arena_bytes_) i++;
    return i;
  }
  static size_t offset_in(const Arena &arena, const void *address) {
    return static_cast<size_t>(static_cast<const std::byte *>(address) - arena.begin);
  }
  MbarrierState &state_of(const Mbarrier &);
  void check_initialised(const Mbarrier &);
  void acquire(const Block &, const uint32_t *waiting, const SharedClock &clock);
  BarrierClock &released_at(const NamedBarrier &);

  std::string thread_name(uint32_t thread) const;
  std::string mbarrier_name(uint32_t id) const;
  std::string actor(const Epoch &) const;
  std::string place(const Arena &, const Granule &) const;
  [[noreturn]] void report_race(const Arena &, const Granule &, const Operation &,
                                const Epoch &before, Access access_before) const;
  [[noreturn]] void report_unfenced(const Arena &, const Granule &, const Operation &) const;
  [[noreturn]] void report_initialisation(const Mbarrier &, const Epoch &) const;

  const Cluster *cluster_ = nullptr;
  HappensBefore happens_before_;
  std::vector<Arena> arenas_;
  size_t arena_bytes_ = 0;
  std::vector<Reader> readers_;
  uint32_t free_readers_ = 0;
  std::vector<MbarrierState> mbarriers_;
  std::vector<BarrierClock> named_barriers_;  ///< [block][id]
};

/// The detector of this OS thread's engine; NULL before its first cluster.
extern constinit thread_local Detector *detector;

}  // namespace mp::host::engine::race
