// Happens-before order within a cluster, for SOFTGPU_RACECHECK: vector clocks with a component for
// each thread, as in FastTrack (Flanagan and Freund, 2009), and additional ones for asynchronous
// operations.
//
// The threads of a warp share a time, which advances when any of them releases.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "softgpu/machine/lanes.h"
#include "softgpu/machine/race_clock.h"

namespace softgpu {

/// Kinds of logical threads.  The first four exist per warp, with 32 lanes each.
enum class RaceActor : uint8_t {
  kThreads,
  kCopies,  ///< cp.async of a lane; its time is the group number
  kBulk,    ///< reads of bulk stores of a lane; its time is the group number
  kStores,  ///< writes of bulk stores of a lane; its time is the group number
  kWgmma,   ///< wgmma of the warpgroup that starts at a warp; its time is the operation number
  kTma,     ///< bulk loads that an mbarrier tracks; its time is the phase number
};

/// Index of a logical thread in its cluster.
using RaceActorId = uint16_t;

struct RaceAccess {
  Lanes lanes = 0;  ///< accessing lanes; lane 0 for logical threads without lanes; 0: no access
  uint32_t time = 0;
  uint32_t statement = 0;  ///< index in Program::code
  RaceActorId actor = 0;
  bool writes = false;
  bool is_strong = false;  ///< atomic access: does not conflict with other strong accesses
  // Global memory only:
  bool observes = false;   ///< atomic update, which all previous strong writes precede
  uint32_t cluster = 0;    ///< number of the cluster in a sequence of grids
  uint32_t component = 0;  ///< component of lane 0 in the clocks of that cluster
};

class RaceOrder {
 public:
  /// @param ended  clusters that had ended before the grid began
  RaceOrder(uint32_t num_warps, uint32_t cluster, SharedClusters ended)
      : num_warps_(num_warps), cluster_(cluster), ended_(std::move(ended)), warps_(num_warps) {}

  RaceActorId id_of(RaceActor, uint32_t warp_or_mbarrier) const;
  RaceActor actor_of(RaceActorId) const;
  uint32_t index_of(RaceActorId) const;  ///< warp or mbarrier

  uint32_t cluster() const { return cluster_; }
  uint32_t time_of(uint32_t warp) const { return warps_[warp].time; }
  uint32_t copy_group(uint32_t warp, int lane) const {
    return warps_[warp].num_copy_groups[static_cast<size_t>(lane)] + 1;
  }

  /// Returns whether an access happened before the current operation of a lane.
  bool happened_before(const RaceAccess &access, uint32_t warp, int lane) const;
  bool happened_before_all(const RaceAccess &access, uint32_t warp, Lanes) const;
  bool is_known(const RaceAccess &access, const SharedClock &) const;

  /// Returns the accesses of these lanes, and those that happened before them.  Later accesses are
  /// excluded.
  SharedClock release(uint32_t warp, Lanes);
  void acquire(uint32_t warp, Lanes, const SharedClock &);
  /// Orders the lanes after one another's accesses.
  void join_lanes(uint32_t warp, Lanes lanes) { acquire(warp, lanes, release(warp, lanes)); }
  /// Orders the lanes after the accesses of an asynchronous logical thread up to a time.
  void learn(uint32_t warp, Lanes, RaceActorId, uint32_t time);
  void add_to(RaceClock &clock, RaceActorId, uint32_t time);
  /// Returns the first component of a logical thread.
  uint32_t take_component(RaceActorId);

  // Groups of cp.async and bulk stores, per lane.

  void commit_copies(uint32_t warp, Lanes);
  void wait_for_copies(uint32_t warp, Lanes, uint32_t num_pending);
  void wait_for_bulk(uint32_t warp, int lane, uint32_t num_groups, bool until_read);

  // Fences, and relaxed operations that only fences order: PTX ISA, Release and Acquire Patterns.

  void fence(uint32_t warp, Lanes);
  /// Returns the clock that the last fence of the lane, or of a lane before a barrier, released.
  SharedClock fenced(uint32_t warp, int lane) const {
    const SharedClock &known = warps_[warp].known[static_cast<size_t>(lane)];
    return known ? known->fenced : nullptr;
  }
  /// Records a fence.proxy.async for global memory.
  void fence_proxy(uint32_t warp, Lanes);
  /// Defers the acquisition of a clock to the next fence of the lane, or of a lane after a barrier.
  void acquire_at_fence(uint32_t warp, int lane, const SharedClock &);

 private:
  using Times = std::array<uint32_t, kWarpSize>;
  struct WarpState {
    uint32_t time = 1;
    /// Clocks of other threads per lane; a lane's own accesses are always known.
    std::array<SharedClock, kWarpSize> known;
    Times num_copy_groups{}, copies_done{}, bulk_done{}, stores_done{};  ///< group numbers
  };

  static constexpr uint32_t kNoComponent = ~0u;
  uint32_t component_of(RaceActorId) const;
  bool is_own_cluster(const RaceAccess &access) const { return access.cluster == cluster_; }
  bool is_own_warp(const RaceAccess &, uint32_t warp) const;
  void add_own(RaceClock &, uint32_t warp, Lanes);

  const uint32_t num_warps_, cluster_;
  const SharedClusters ended_;
  std::vector<WarpState> warps_;
  std::vector<uint32_t> components_;  ///< first component of each logical thread
  uint32_t num_components_ = 0;
};

}  // namespace softgpu
