// What happens before what in a cluster, for SOFTGPU_RACECHECK: vector clocks with a component for each thread, as in
// FastTrack (Flanagan and Freund, 2009), and some for what works asynchronously.
//
// The threads of a warp count time together: it goes on whenever one of them releases what it did.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/softgpu/machine/lanes.h"
#include "tools/softgpu/machine/race_clock.h"

namespace softgpu {

/// Who touches memory.  The first three are those of a warp, each of 32 lanes.
enum class RaceActor : uint8_t {
  kThreads,
  kCopies,  ///< cp.async of a lane; the time is the number of its group
  kBulk,    ///< bulk stores of a lane, likewise
  kWgmma,   ///< of the warpgroup that begins with a warp; the time is the number of the operation
  kTma,     ///< bulk loads that an mbarrier counts; the time is the number of its phase
};

/// Number of an actor in its cluster.
using RaceActorId = uint16_t;

struct RaceAccess {
  Lanes lanes = 0;  ///< who did it, lane 0 of actors that have none; 0: nobody
  uint32_t time = 0;
  uint32_t statement = 0;  ///< index in Program::code
  RaceActorId actor = 0;
  bool writes = false;
  bool is_strong = false;  ///< as atomics: no race with others of its kind
};

class RaceOrder {
 public:
  explicit RaceOrder(uint32_t num_warps) : num_warps_(num_warps), warps_(num_warps) {}

  RaceActorId id_of(RaceActor, uint32_t warp_or_mbarrier) const;
  RaceActor actor_of(RaceActorId) const;
  uint32_t index_of(RaceActorId) const;  ///< the warp or mbarrier

  uint32_t time_of(uint32_t warp) const { return warps_[warp].time; }
  uint32_t copy_group(uint32_t warp, int lane) const {
    return warps_[warp].num_copy_groups[static_cast<size_t>(lane)] + 1;
  }

  /// Whether an access happened before what a lane of a warp does now.
  bool happened_before(const RaceAccess &access, uint32_t warp, int lane) const;
  bool is_known(const RaceAccess &access, const SharedClock &) const;

  /// What these lanes, and those that they have heard of, have done; what they do from now on is not part of it.
  SharedClock release(uint32_t warp, Lanes);
  void acquire(uint32_t warp, Lanes, const SharedClock &);
  /// Each of the lanes learns what the others did.
  void join_lanes(uint32_t warp, Lanes lanes) { acquire(warp, lanes, release(warp, lanes)); }
  /// An asynchronous actor without lanes is done up to a time.
  void learn(uint32_t warp, Lanes, RaceActorId, uint32_t time);
  void add_to(RaceClock &clock, RaceActorId, uint32_t time);

  // Groups of cp.async and of bulk stores, of each lane.

  void commit_copies(uint32_t warp, Lanes);
  void wait_for_copies(uint32_t warp, Lanes, uint32_t num_pending);
  void wait_for_bulk(uint32_t warp, int lane, uint32_t num_groups);

  // Fences, and operations that are ordered by them alone: PTX ISA, Release and Acquire Patterns.

  void fence(uint32_t warp, Lanes);
  /// What the lane released with its last fence.
  const SharedClock &fenced(uint32_t warp, int lane) const {
    return warps_[warp].fenced[static_cast<size_t>(lane)];
  }
  /// To be acquired with the next fence.
  void acquire_at_fence(uint32_t warp, int lane, const SharedClock &);

 private:
  using Times = std::array<uint32_t, kWarpSize>;
  struct WarpState {
    uint32_t time = 1;
    /// What each lane knows of others; of itself it knows all.
    std::array<SharedClock, kWarpSize> known, fenced, at_fence;
    Times num_copy_groups{}, copies_done{}, bulk_done{};  ///< groups
  };

  static constexpr uint32_t kNoComponent = ~0u;
  uint32_t component_of(RaceActorId) const;
  uint32_t take_component(RaceActorId);
  void add_own(RaceClock &, uint32_t warp, Lanes);

  const uint32_t num_warps_;
  std::vector<WarpState> warps_;
  std::vector<uint32_t> components_;  ///< the first of each actor
  uint32_t num_components_ = 0;
};

}  // namespace softgpu
