#include "softgpu/isa/race_access.h"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "softgpu/machine/faults.h"
#include "softgpu/machine/race_check.h"

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

/// Host addresses of the bytes that lanes store.
struct Destinations {
  Lanes lanes;
  const std::byte *of[kWarpSize];
};

Destinations destinations_of(Warp &warp, const SharedLanes &shared, Lanes global,
                             const LaneAddresses &addresses) {
  Destinations to;
  to.lanes = shared.lanes | global;
  for_each_lane(to.lanes, [&](int l) {
    const uint32_t in_shared = shared.addresses[l];
    to.of[l] = global >> l & 1 ? reinterpret_cast<const std::byte *>(addresses.of[l])
                               : memory_at(warp, in_shared)->at(in_shared & kOffsetMask);
  });
  return to;
}

/// Returns the lanes whose bytes overlap with those of another lane.
Lanes overlapping_lanes(const Destinations &to, uint32_t bytes) {
  std::pair<const std::byte *, int> sorted[kWarpSize];
  int n = 0;
  for_each_lane(to.lanes, [&](int l) { sorted[n++] = {to.of[l], l}; });
  std::sort(sorted, sorted + n);
  Lanes overlapping = 0;
  for (int k = 1; k < n; k++) {
    if (sorted[k].first - sorted[k - 1].first >= static_cast<ptrdiff_t>(bytes)) continue;
    overlapping |= Lanes{1} << sorted[k].second | Lanes{1} << sorted[k - 1].second;
  }
  return overlapping;
}

/// Returns "byte 4 of shared memory" for a host address within a lane's access.
std::string name_of(const std::byte *place, int lane, const SharedLanes &shared,
                    const Destinations &to) {
  if ((shared.lanes >> lane & 1) != 0)
    return format("byte %u of shared memory", static_cast<uint32_t>(place - to.of[lane]) +
                                                  (shared.addresses[lane] & kOffsetMask) -
                                                  kReservedSmem);
  const auto address = reinterpret_cast<uint64_t>(place);
  const std::optional<Allocation> a = find_allocation(address);
  return format("byte %" PRIu64 " of %s", a ? address - a->begin : address,
                a ? a->name.c_str() : "global memory");
}

/// Executes a store lane by lane where lanes overlap.  Reports different values of a byte: the
/// winner is undefined (CUDA C++ Programming Guide, SIMT Architecture).
Step store_one_by_one(Warp &warp, const Instruction &i, Lanes lanes, Lanes overlapping,
                      const SharedLanes &shared, const Destinations &to) {
  const AccessOperands &o = i.as<AccessOperands>();
  if ((lanes & ~overlapping) != 0) o.watched(warp, i, lanes & ~overlapping);
  std::byte stored[kWarpSize][kMaxBytes];
  Lanes done = 0;
  bool was_reported = false;
  for_each_lane(overlapping, [&](int l) {
    o.watched(warp, i, Lanes{1} << l);  // faults if the destination is invalid
    std::memcpy(stored[l], to.of[l], o.bytes);
    for_each_lane(done, [&](int other) {
      for (ptrdiff_t b = 0; b < o.bytes && !was_reported; b++) {
        const ptrdiff_t of_other = to.of[l] + b - to.of[other];
        if (of_other < 0 || of_other >= o.bytes || stored[other][of_other] == stored[l][b])
          continue;
        was_reported = true;
        violation(warp, i, l, "race: thread %d concurrently writes a different value to %s",
                  warp.thread_of(other), name_of(to.of[l] + b, l, shared, to).c_str());
      }
    });
    done |= Lanes{1} << l;
  });
  return Step::kNext;
}

Step store(Warp &warp, const Instruction &i, Lanes lanes, const SharedLanes &shared, Lanes global,
           const LaneAddresses &addresses) {
  const AccessOperands &o = i.as<AccessOperands>();
  // Strong stores to global memory are excluded: they do not race, and any of them may win.
  const Destinations to = destinations_of(warp, shared, o.order.is_strong ? 0 : global, addresses);
  const Lanes overlapping = overlapping_lanes(to, o.bytes);
  if (overlapping == 0) return o.watched(warp, i, lanes);
  return store_one_by_one(warp, i, lanes, overlapping, shared, to);
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
  const Step step = o.access == Access::kWrite ? store(warp, i, lanes, shared, global, addresses)
                                               : o.watched(warp, i, lanes);
  if (o.order.is_strong && o.access != Access::kWrite)
    races.acquire_flags(warp, lanes, addresses.of, o.order.acquires);
  return step;
}

}  // namespace softgpu
