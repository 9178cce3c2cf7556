// Data races in shared memory, by happens-before.
//
// Accesses that conflict must be ordered by a synchronisation.  What orders:
//
//   block_sync, cluster_sync, warp_sync   join their threads
//   mbarrier, named barrier               an arrive tells what its thread knows and did, a wait
//                                         learns what was told by the end of the phase
//   copy_async_wait, tma_store_wait_read  tell a thread of its own copies and stores
//   wgmma_wait                            tells it of the share of its warp
//
// Shuffles order no memory, nor do the WMMA functions, whose accesses count as those of the lane
// that holds the element on this machine.  An asynchronous operation may read and write as soon as
// it is started, so all that it conflicts with must be known to the thread that starts it; for
// wgmma, to all threads of the warpgroup.  A TMA load on an mbarrier is known to those who have
// waited for the phase it was started in.  Writes of threads must also have been fenced for TMA
// stores and wgmma to see them (async_proxy_fence), by their thread or by one that knew of them.
//
// Exact, with these limits.  Of wgmma: the warpgroup is looked at when its last thread has issued,
// and may by then know more than when its first did; every warp counts as reading all of A.  Of
// mbarriers: that their initialisation is known to all who use them is checked, other accesses to
// their words are not.  Not looked at: gmem, fences of cp.async writes, and the bytes within one
// 2-byte element.
//
// Source: Flanagan & Freund, FastTrack, PLDI 2009; their epochs, with every concurrent reader kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/simt/sim/barriers.h"
#include "kernels/simt/sim/engine.h"
#include "kernels/simt/sim/race/happens_before.h"

namespace mp::host::engine::race {

enum class Access { read, write };

constexpr size_t kGranuleBytes = 2;  // the smallest element of a kernel

class Detector {
 public:
  void begin_cluster(const Cluster &);
  void join(const Warp *warps, size_t num_warps) { knowledge_.join(warps, num_warps); }

  // Of the running thread.
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

  bool covers(const void *address) const { return arena_of(address) < arenas_.size(); }

 private:
  struct Reader {
    Event event;
    uint32_t next;
  };
  struct Granule {
    Event write;
    uint32_t readers;  ///< since that write; index into readers_, 0 ends the list
  };
  /// Of one block.
  struct Arena {
    const std::byte *begin;
    std::vector<Granule> granules;
    size_t used;
  };
  struct MbarrierState {
    Event initialised;
    Released released;
    Known published;  ///< when its last phase completed
  };
  struct Now {
    Event event;
    Access access;
    Knowledge::Knower knower;  ///< who must know of what it conflicts with
    bool needs_fence = false;
  };

  Knowledge::Knower running() const;
  Event event_of_thread(const void *code) const;
  void check_range(const void *address, size_t bytes, const Now &);
  void check(const Arena &, Granule &, const Now &);
  void add_reader(Granule &, const Now &);
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
  void learn(const Block &, const uint32_t *waiting, const Known &told);
  Released &released_at(const NamedBarrier &);

  std::string thread_name(uint32_t thread) const;
  std::string mbarrier_name(uint32_t id) const;
  std::string actor(const Event &) const;
  std::string place(const Arena &, const Granule &) const;
  [[noreturn]] void report_race(const Arena &, const Granule &, const Now &, const Event &before,
                                Access access_before) const;
  [[noreturn]] void report_unfenced(const Arena &, const Granule &, const Now &) const;
  [[noreturn]] void report_initialisation(const Mbarrier &, const Event &) const;

  const Cluster *cluster_ = nullptr;
  Knowledge knowledge_;
  std::vector<Arena> arenas_;
  size_t arena_bytes_ = 0;
  std::vector<Reader> readers_;
  uint32_t free_readers_ = 0;
  std::vector<MbarrierState> mbarriers_;
  std::vector<Released> named_barriers_;  ///< [block][id]
};

/// Of the OS thread's engine; NULL before its first block.
extern constinit thread_local Detector *detector;

}  // namespace mp::host::engine::race
