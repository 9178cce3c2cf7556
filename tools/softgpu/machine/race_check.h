// SOFTGPU_RACECHECK: accesses to the shared memory of a cluster that conflict, and that nothing orders.
//
// What is asynchronous (cp.async, bulk copies, wgmma) is a thread of its own that begins where it is issued, and that
// others know to be done by the wait, or the mbarrier, that its manual names.  Accesses of wgmma and bulk copies are looked
// at when they are performed, with what was known when they were issued; those of cp.async when it is issued.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/softgpu/machine/race_order.h"
#include "tools/softgpu/machine/race_shadow.h"
#include "tools/softgpu/machine/shared_memory.h"
#include "tools/softgpu/program/instruction.h"

namespace softgpu {

struct Block;
struct BulkCopy;
struct Cluster;
struct NamedBarrier;
struct Warp;

struct RaceKind {
  bool writes;
  bool is_strong;  ///< as RaceAccess
};

class RaceCheck {
 public:
  explicit RaceCheck(const Cluster &);

  // Accesses.  Addresses are those of the cluster: a rank, and an offset that was checked.

  /// Each lane touches `bytes` at its address.
  void touch(Warp &, const Instruction &, Lanes, const uint32_t *addresses, uint32_t bytes,
             RaceKind);
  /// All lanes of the set touch the same, or nobody knows which of them touches what.
  void touch_together(Warp &, const Instruction &, Lanes, uint32_t address, uint32_t bytes,
                      RaceKind);
  /// cp.async: each lane of the set writes.
  void copy(Warp &, const Instruction &, Lanes, const uint32_t *addresses, uint32_t bytes);
  /// wgmma: what the warps knew for which it reads, when they issued it, and which of the warpgroup's it is.
  void read_wgmma(Warp &, const Instruction &, const SharedClock &issued, uint64_t sequence,
                  uint32_t offset, uint32_t bytes);
  void read_bulk(const BulkCopy &);
  void land_bulk(const BulkCopy &, Block &);

  // Order.

  SharedClock release(Warp &, Lanes);
  void join_lanes(Warp &, Lanes);

  void arrive(const NamedBarrier &, Warp &, Lanes);
  /// Before the arrivals are forgotten.
  void complete(const NamedBarrier &);

  void arrive_at_cluster(Warp &, bool releases);
  void complete_cluster();
  void wait_for_cluster(Warp &);

  /// Initialises or invalidates it.
  void init_mbarrier(Warp &, const Instruction &, int lane, uint32_t address);
  /// Arrives, or changes the tx-count.
  void use_mbarrier(Warp &, const Instruction &, int lane, uint32_t address, bool releases);
  void complete_mbarrier(uint32_t address);
  /// Each lane has found the phase complete that it waits for.
  void wait_for_mbarriers(Warp &, const Instruction &, Lanes, const uint32_t *addresses,
                          bool acquires);

  void commit_copies(Warp &, Lanes);
  void wait_for_copies(Warp &, Lanes, uint32_t num_pending);
  void wait_for_bulk(Warp &, Lanes, uint32_t num_pending);
  void wait_for_wgmma(Warp &, uint64_t num_done);

  void fence(Warp &, Lanes);
  /// Strong operations on memory of any space, of which a flag may be: before a write, and after a read.
  void release_flags(Warp &, Lanes, const uint64_t *addresses, bool is_update, bool releases);
  void acquire_flags(Warp &, Lanes, const uint64_t *addresses, bool acquires);

 private:
  struct Mbarrier {
    uint32_t index = 0;
    uint32_t num_phases = 0;  ///< that are complete
    RaceClock arrived;        ///< in all phases so far
    SharedClock completed;    ///< the same, when the last complete phase ended
  };

  uint32_t index_of(const Warp &) const;
  Warp &warp_at(uint32_t index) const;
  RaceAccess access_of(const Warp &, const Instruction &, Lanes, RaceKind) const;
  RaceShadow &shadow_of(uint32_t address) { return shadows_[address >> kRankShift]; }
  Mbarrier &mbarrier_at(uint32_t address);
  RaceActorId wgmma_of(const Warp &) const;
  SharedClock released_by(Warp &, int lane, bool releases);
  void acquire(Warp &, Lanes, const SharedClock &, bool acquires);
  /// Of an asynchronous operation that knows what was known at its issue.
  void touch_later(Warp &, const Instruction &, int lane, uint32_t address, uint32_t bytes,
                   const RaceAccess &, const SharedClock &);
  void report(Warp &, const Instruction &, int lane, uint32_t address, const RaceAccess &now,
              const RaceAccess &before) const;
  std::string describe(const RaceAccess &) const;

  const Cluster &cluster_;
  const uint32_t warps_per_block_;
  RaceOrder order_;
  std::vector<RaceShadow> shadows_;  ///< of each block
  std::unordered_map<const NamedBarrier *, RaceClock> barriers_;
  RaceClock cluster_arrived_;
  SharedClock cluster_completed_;
  std::unordered_map<uint32_t, Mbarrier> mbarriers_;  ///< by address
  std::unordered_map<uint64_t, SharedClock> flags_;   ///< what was released there
};

}  // namespace softgpu
