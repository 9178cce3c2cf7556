#include "tools/softgpu/isa/race_access.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "tools/softgpu/machine/faults.h"
#include "tools/softgpu/machine/race_check.h"

namespace softgpu {
namespace {

constexpr uint32_t kMaxBytes = 16;

/// Shared addresses of the lanes with valid accesses; the handler faults for other lanes.
struct SharedLanes {
  Lanes lanes;
  uint32_t addresses[kWarpSize];
};

SharedMemory *memory_at(Warp &warp, uint32_t address) {
  const auto &blocks = warp.block->cluster->blocks;
  const uint32_t rank = address >> kRankShift;
  return rank < blocks.size() ? &blocks[rank]->smem : nullptr;
}

SharedLanes shared_lanes(Warp &warp, Lanes lanes, const AccessOperands &o,
                         const LaneAddresses &addresses) {
  SharedLanes shared{};
  for_each_lane(lanes & lanes_in_shared(o.space, addresses), [&](int l) {
    shared.addresses[l] = static_cast<uint32_t>(addresses.of[l]);
    const SharedMemory *smem = memory_at(warp, shared.addresses[l]);
    if (smem != nullptr && smem->holds(shared.addresses[l] & kOffsetMask, o.bytes))
      shared.lanes |= Lanes{1} << l;
  });
  return shared;
}

/// Returns the lanes whose addresses are in global memory, valid or not.
Lanes global_lanes(Lanes lanes, Space space, const LaneAddresses &addresses) {
  if (space == Space::kGlobal) return lanes;
  if (space != Space::kGeneric) return 0;
  return lanes & ~lanes_in_shared(space, addresses) &
         lanes_where([&](int l) { return (addresses.of[l] & kWindowMask) != kLocalWindow; });
}

/// Returns the lanes whose bytes overlap with those of another lane.
Lanes overlapping_lanes(const SharedLanes &shared, uint32_t bytes) {
  std::pair<uint32_t, int> sorted[kWarpSize];
  int n = 0;
  for_each_lane(shared.lanes, [&](int l) { sorted[n++] = {shared.addresses[l], l}; });
  std::sort(sorted, sorted + n);
  Lanes overlapping = 0;
  for (int k = 1; k < n; k++) {
    if (sorted[k].first - sorted[k - 1].first >= bytes) continue;
    overlapping |= Lanes{1} << sorted[k].second | Lanes{1} << sorted[k - 1].second;
  }
  return overlapping;
}

/// Executes a store lane by lane.  Reports different values at one address: the winner is undefined
/// (CUDA C++ Programming Guide, SIMT Architecture).
Step store_one_by_one(Warp &warp, const Instruction &i, Lanes lanes, const SharedLanes &shared) {
  const AccessOperands &o = i.as<AccessOperands>();
  if ((lanes & ~shared.lanes) != 0) o.watched(warp, i, lanes & ~shared.lanes);
  Lanes done = 0;
  for_each_lane(shared.lanes, [&](int l) {
    const uint32_t offset = shared.addresses[l] & kOffsetMask;
    const std::byte *place = memory_at(warp, shared.addresses[l])->at(offset);
    std::byte before[kMaxBytes];
    std::memcpy(before, place, o.bytes);
    o.watched(warp, i, Lanes{1} << l);
    for_each_lane(done, [&](int other) {
      for (uint32_t b = 0; b < o.bytes; b++) {
        const uint32_t of_other = shared.addresses[l] + b - shared.addresses[other];
        if (of_other >= o.bytes || before[b] == place[b]) continue;
        violation(
            warp, i, l,
            "race: thread %d concurrently writes a different value to byte %u of shared memory",
            warp.thread_of(other), offset + b - kReservedSmem);
        return;
      }
    });
    done |= Lanes{1} << l;
  });
  return Step::kNext;
}

}  // namespace

Step execute_checked(Warp &warp, const Instruction &i, Lanes lanes,
                     const LaneAddresses &addresses) {
  const AccessOperands &o = i.as<AccessOperands>();
  if (o.space == Space::kLocal || o.space == Space::kParameter) return o.watched(warp, i, lanes);
  RaceCheck &races = *races_of(warp);
  const Lanes global = global_lanes(lanes, o.space, addresses);
  std::unique_lock<std::recursive_mutex> lock;
  if (global != 0) lock = races.lock_global();
  const SharedLanes shared = shared_lanes(warp, lanes, o, addresses);
  const bool writes = o.access != Access::kRead, is_update = o.access == Access::kUpdate;
  // The release includes this access.
  races.touch(warp, i, shared.lanes, shared.addresses, o.bytes,
              {.writes = writes, .is_strong = o.order.is_strong});
  const RaceKind kind{.writes = writes, .is_strong = o.order.is_strong, .observes = is_update};
  if (global != 0) races.touch_global(warp, i, global, addresses.of, o.bytes, kind);
  if (o.order.is_strong && writes)
    races.release_flags(warp, lanes, addresses.of, is_update, o.order.releases);
  const bool overlaps = o.access == Access::kWrite && overlapping_lanes(shared, o.bytes) != 0;
  const Step step = overlaps ? store_one_by_one(warp, i, lanes, shared) : o.watched(warp, i, lanes);
  if (o.order.is_strong && o.access != Access::kWrite)
    races.acquire_flags(warp, lanes, addresses.of, o.order.acquires);
  return step;
}

}  // namespace softgpu
