// SOFTGPU_RACECHECK: detects conflicting, unordered accesses to the shared memory of a cluster.
//
// Each asynchronous operation (cp.async, bulk copy, wgmma) is a logical thread that starts at the
// issue.  It happens before the code after the wait, or the wait on an mbarrier, that the PTX ISA
// specifies for it.  Accesses of wgmma and bulk copies are checked when they execute, with the
// clock of their issue; accesses of cp.async are checked at the issue.
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
  bool is_strong;  ///< as in RaceAccess
};

class RaceCheck {
 public:
  explicit RaceCheck(const Cluster &);

  // Accesses.  Addresses are cluster addresses: a rank and a checked offset.

  /// Records an access of each lane to `bytes` bytes at its address.
  void touch(Warp &, const Instruction &, Lanes, const uint32_t *addresses, uint32_t bytes,
             RaceKind);
  /// Records a common access of the lanes; also if their individual ranges are unknown.
  void touch_together(Warp &, const Instruction &, Lanes, uint32_t address, uint32_t bytes,
                      RaceKind);
  /// Records the writes of a cp.async by each lane of the set.
  void copy(Warp &, const Instruction &, Lanes, const uint32_t *addresses, uint32_t bytes);
  /// Records a read of wgmma.
  /// @param issued    common clock of the participating warps at the issue
  /// @param sequence  number of the operation within the warpgroup
  void read_wgmma(Warp &, const Instruction &, const SharedClock &issued, uint64_t sequence,
                  uint32_t offset, uint32_t bytes);
  void read_bulk(const BulkCopy &);
  void land_bulk(const BulkCopy &, Block &);

  // Synchronization.

  SharedClock release(Warp &, Lanes);
  void join_lanes(Warp &, Lanes);

  void arrive(const NamedBarrier &, Warp &, Lanes);
  /// Must be called before the arrivals are reset.
  void complete(const NamedBarrier &);

  void arrive_at_cluster(Warp &, bool releases);
  void complete_cluster();
  void wait_for_cluster(Warp &);

  /// Initializes or invalidates an mbarrier.
  void init_mbarrier(Warp &, const Instruction &, int lane, uint32_t address);
  /// Records an arrival or a change of the tx-count.
  void use_mbarrier(Warp &, const Instruction &, int lane, uint32_t address, bool releases);
  void complete_mbarrier(uint32_t address);
  /// Records that each lane has observed the completion of its phase.
  void wait_for_mbarriers(Warp &, const Instruction &, Lanes, const uint32_t *addresses,
                          bool acquires);

  void commit_copies(Warp &, Lanes);
  void wait_for_copies(Warp &, Lanes, uint32_t num_pending);
  void wait_for_bulk(Warp &, Lanes, uint32_t num_pending);
  void wait_for_wgmma(Warp &, uint64_t num_done);

  void fence(Warp &, Lanes);
  /// Strong operations in any state space, which may access a flag.  release_flags is called before
  /// a write, acquire_flags after a read.
  void release_flags(Warp &, Lanes, const uint64_t *addresses, bool is_update, bool releases);
  void acquire_flags(Warp &, Lanes, const uint64_t *addresses, bool acquires);

 private:
  struct Mbarrier {
    uint32_t index = 0;
    uint32_t num_phases = 0;  ///< completed phases
    RaceClock arrived;        ///< arrivals in all phases so far
    SharedClock completed;    ///< `arrived` at the end of the last completed phase
  };

  uint32_t index_of(const Warp &) const;
  Warp &warp_at(uint32_t index) const;
  RaceAccess access_of(const Warp &, const Instruction &, Lanes, RaceKind) const;
  RaceShadow &shadow_of(uint32_t address) { return shadows_[address >> kRankShift]; }
  Mbarrier &mbarrier_at(uint32_t address);
  RaceActorId wgmma_of(const Warp &) const;
  SharedClock released_by(Warp &, int lane, bool releases);
  void acquire(Warp &, Lanes, const SharedClock &, bool acquires);
  /// Records an access of an asynchronous operation, with the clock of its issue.
  void touch_later(Warp &, const Instruction &, int lane, uint32_t address, uint32_t bytes,
                   const RaceAccess &, const SharedClock &);
  void report(Warp &, const Instruction &, int lane, uint32_t address, const RaceAccess &now,
              const RaceAccess &before) const;
  std::string describe(const RaceAccess &) const;

  const Cluster &cluster_;
  const uint32_t warps_per_block_;
  RaceOrder order_;
  std::vector<RaceShadow> shadows_;  ///< per block
  std::unordered_map<const NamedBarrier *, RaceClock> barriers_;
  RaceClock cluster_arrived_;
  SharedClock cluster_completed_;
  std::unordered_map<uint32_t, Mbarrier> mbarriers_;  ///< key: address
  std::unordered_map<uint64_t, SharedClock> flags_;   ///< released clocks by address
};

}  // namespace softgpu
