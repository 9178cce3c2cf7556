// SOFTGPU_RACECHECK: detects conflicting, unordered accesses to the shared memory of a cluster and
// to global memory.
//
// Each asynchronous operation (cp.async, bulk copy, wgmma) is a logical thread that starts at the
// issue.  It happens before the code after the wait, or the wait on an mbarrier, that the PTX ISA
// specifies for it.  Accesses of wgmma and bulk copies are checked when they execute, with the
// clock of their issue; accesses of cp.async are checked at the issue.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "softgpu/machine/global_races.h"
#include "softgpu/machine/race_order.h"
#include "softgpu/machine/race_shadow.h"
#include "softgpu/machine/shared_memory.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

struct Block;
struct BulkCopy;
struct Cluster;
struct NamedBarrier;

struct RaceKind {
  bool writes;
  bool is_strong;  ///< as in RaceAccess
  bool observes = false;
};

class RaceCheck {
 public:
  /// @param first_cluster  number of the grid's first cluster
  RaceCheck(const Cluster &, GlobalRaces &, uint32_t first_cluster);

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

  // Accesses to global memory.

  auto lock_global() { return global_.lock(); }
  void touch_global(Warp &, const Instruction &, Lanes, const uint64_t *addresses, uint32_t bytes,
                    RaceKind);
  /// Records the reads of a cp.async by each lane of the set: bytes[lane] bytes.
  void read_global_copy(Warp &, const Instruction &, Lanes, const uint64_t *addresses,
                        const uint32_t *bytes);
  /// Records a row of a load that a block receives.
  void read_global_bulk(const BulkCopy &, const Block &, uint64_t address, uint64_t bytes);
  void write_global_bulk(const BulkCopy &, uint64_t address, uint64_t bytes);

  // Synchronization.

  SharedClock release(Warp &warp, Lanes lanes) { return order_.release(index_of(warp), lanes); }
  void join_lanes(Warp &warp, Lanes lanes) { order_.join_lanes(index_of(warp), lanes); }

  void arrive(const NamedBarrier &, Warp &, Lanes);
  /// Must be called before the arrivals are reset.
  void complete(const NamedBarrier &);

  void arrive_at_cluster(Warp &, bool releases);
  void complete_cluster() { cluster_completed_ = share(cluster_arrived_); }
  void wait_for_cluster(Warp &);

  /// Initializes or invalidates an mbarrier.
  void init_mbarrier(Warp &, const Instruction &, int lane, uint32_t address);
  /// Records an arrival or a change of the tx-count.
  void use_mbarrier(Warp &, const Instruction &, int lane, uint32_t address, bool releases);
  void complete_mbarrier(uint32_t address);
  /// Records that each lane has observed the completion of its phase.
  void wait_for_mbarriers(Warp &, const Instruction &, Lanes, const uint32_t *addresses,
                          bool acquires);

  void commit_copies(Warp &warp, Lanes lanes) { order_.commit_copies(index_of(warp), lanes); }
  void wait_for_copies(Warp &warp, Lanes lanes, uint32_t num_pending) {
    order_.wait_for_copies(index_of(warp), lanes, num_pending);
  }
  void wait_for_bulk(Warp &, Lanes, uint32_t num_pending, bool until_read);
  void wait_for_wgmma(Warp &, uint64_t num_done);

  /// griddepcontrol
  void wait_for_grid(Warp &, Lanes);
  void allow_dependents(const Block &);

  void fence(Warp &warp, Lanes lanes) { order_.fence(index_of(warp), lanes); }
  /// fence.proxy.async of global memory
  void fence_proxy(Warp &warp, Lanes lanes) { order_.fence_proxy(index_of(warp), lanes); }
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
  RaceAccess access_of(const Warp &, const Instruction &, Lanes, RaceKind) const;
  RaceAccess access_of_store(const BulkCopy &, RaceActor, RaceKind) const;
  RaceAccess access_of_load(const BulkCopy &, const Block &to, RaceKind);
  Mbarrier &mbarrier_at(uint32_t address);
  RaceActorId wgmma_of(const Warp &) const;
  SharedClock released_by(Warp &, int lane, bool releases);
  void acquire(Warp &, Lanes, const SharedClock &, bool acquires);
  bool is_global(uint64_t address) const;
  /// Returns a lock if any of the flags is in global memory.
  std::unique_lock<std::recursive_mutex> lock_flags(Lanes, const uint64_t *addresses);
  SharedClock exported(const SharedClock &);

  // Memory is SharedRaces or GlobalRaces.

  template <class Memory, class Address>
  void touch_in(Memory &, Warp &, const Instruction &, Lanes, const Address *addresses,
                uint32_t bytes, RaceAccess);
  /// @param bytes  returns the bytes of a lane
  template <class Memory, class Address, class Bytes>
  void copy_in(Memory &, Warp &, const Instruction &, Lanes, const Address *addresses,
               Bytes &&bytes, RaceKind);
  /// Records an access of an asynchronous operation, with the clock of its issue.
  template <class Memory, class Address>
  void touch_later(Memory &, Warp &, const Instruction &, int lane, Address address, uint64_t bytes,
                   const RaceAccess &, const SharedClock &);
  void touch_global_later(const BulkCopy &, RaceAccess, uint64_t address, uint64_t bytes);
  template <class Address>
  void report(Warp &, const Instruction &, int lane, Address, const RaceAccess &now,
              const RaceAccess &before) const;
  std::string describe(const RaceAccess &) const;

  /// Shared memory of the blocks, by cluster address.
  struct SharedRaces {
    template <class F>
    const RaceAccess *find_race(uint32_t address, uint64_t bytes, const RaceAccess &now, F &&f) {
      return of_block[address >> kRankShift].find_race(address & kOffsetMask,
                                                       static_cast<uint32_t>(bytes), now, f);
    }
    template <class F>
    void add(uint32_t address, uint64_t bytes, const RaceAccess &now, F &&f) {
      of_block[address >> kRankShift].add(address & kOffsetMask, static_cast<uint32_t>(bytes), now,
                                          f);
    }
    std::vector<RaceShadow> of_block;
  };

  const Cluster &cluster_;
  GlobalRaces &global_;
  const uint32_t first_cluster_;  ///< number of the grid's first cluster
  const uint32_t warps_per_block_;
  RaceOrder order_;
  SharedRaces shared_;
  std::vector<bool> has_waited_;  ///< per block: griddepcontrol.wait
  /// Clock that was exported last, and the result: the lanes of a warp often release the same one.
  SharedClock to_export_, exported_;
  std::unordered_map<const NamedBarrier *, RaceClock> barriers_;
  RaceClock cluster_arrived_;
  SharedClock cluster_completed_;
  std::unordered_map<uint32_t, Mbarrier> mbarriers_;  ///< key: address
  std::unordered_map<uint64_t, SharedClock> flags_;   ///< as in GlobalRaces, for shared memory
};

}  // namespace softgpu
