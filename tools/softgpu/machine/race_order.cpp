#include "tools/softgpu/machine/race_order.h"

#include <algorithm>

namespace softgpu {
namespace {

/// Calls f(clock, lanes) for each distinct clock of the lanes.
template <class Clocks, class F>
void for_each_clock(Clocks &clocks, Lanes lanes, F &&f) {
  while (lanes != 0) {
    const auto first = static_cast<size_t>(first_lane(lanes));
    Lanes same = 0;
    for_each_lane(lanes, [&](int l) {
      if (clocks[static_cast<size_t>(l)] == clocks[first]) same |= Lanes{1} << l;
    });
    f(SharedClock(clocks[first]), same);
    lanes &= ~same;
  }
}

}  // namespace

// Per-warp logical threads have the indices kind * warps + warp; mbarriers follow.

RaceActorId RaceOrder::id_of(RaceActor actor, uint32_t index) const {
  return static_cast<RaceActorId>(static_cast<uint32_t>(actor) * num_warps_ + index);
}

RaceActor RaceOrder::actor_of(RaceActorId id) const {
  const auto kind = std::min(id / num_warps_, static_cast<uint32_t>(RaceActor::kTma));
  return static_cast<RaceActor>(kind);
}

uint32_t RaceOrder::index_of(RaceActorId id) const {
  return id - static_cast<uint32_t>(actor_of(id)) * num_warps_;
}

uint32_t RaceOrder::component_of(RaceActorId id) const {
  return id < components_.size() ? components_[id] : kNoComponent;
}

uint32_t RaceOrder::take_component(RaceActorId id) {
  if (id >= components_.size()) components_.resize(id + 1u, kNoComponent);
  if (components_[id] == kNoComponent) {
    components_[id] = num_components_;
    num_components_ += actor_of(id) <= RaceActor::kBulk ? kWarpSize : 1;
  }
  return components_[id];
}

bool RaceOrder::is_known(const RaceAccess &access, const SharedClock &clock) const {
  const uint32_t first = component_of(access.actor);
  if (!clock || first == kNoComponent) return false;
  bool is_known = true;
  for_each_lane(access.lanes, [&](int l) {
    is_known &= (*clock)[first + static_cast<uint32_t>(l)] >= access.time;
  });
  return is_known;
}

bool RaceOrder::happened_before(const RaceAccess &access, uint32_t warp, int lane) const {
  const WarpState &state = warps_[warp];
  const auto own = static_cast<size_t>(lane);
  RaceAccess of_others = access;
  const bool is_own = actor_of(access.actor) <= RaceActor::kBulk && index_of(access.actor) == warp;
  if (is_own && (access.lanes >> lane & 1) != 0) {
    of_others.lanes &= ~(Lanes{1} << lane);
    const RaceActor actor = actor_of(access.actor);
    if (actor == RaceActor::kCopies && state.copies_done[own] < access.time) return false;
    if (actor == RaceActor::kBulk && state.bulk_done[own] < access.time) return false;
  }
  return of_others.lanes == 0 || is_known(of_others, state.known[own]);
}

void RaceOrder::add_own(RaceClock &clock, uint32_t warp, Lanes lanes) {
  const WarpState &state = warps_[warp];
  const uint32_t threads = take_component(id_of(RaceActor::kThreads, warp));
  for_each_lane(lanes, [&](int l) { clock.learn(threads + static_cast<uint32_t>(l), state.time); });
  const auto add = [&](RaceActor actor, const Times &done) {
    const uint32_t first = component_of(id_of(actor, warp));
    if (first == kNoComponent) return;
    for_each_lane(lanes, [&](int l) {
      clock.learn(first + static_cast<uint32_t>(l), done[static_cast<size_t>(l)]);
    });
  };
  add(RaceActor::kCopies, state.copies_done);
  add(RaceActor::kBulk, state.bulk_done);
}

SharedClock RaceOrder::release(uint32_t warp, Lanes lanes) {
  auto clock = std::make_shared<RaceClock>();
  for_each_clock(warps_[warp].known, lanes, [&](const SharedClock &known, Lanes) {
    if (known) clock->join(*known);
  });
  add_own(*clock, warp, lanes);
  warps_[warp].time++;
  return clock;
}

void RaceOrder::acquire(uint32_t warp, Lanes lanes, const SharedClock &clock) {
  auto &known = warps_[warp].known;
  for_each_clock(known, lanes, [&](const SharedClock &before, Lanes same) {
    const SharedClock both = join(before, clock);
    for_each_lane(same, [&](int l) { known[static_cast<size_t>(l)] = both; });
  });
}

void RaceOrder::add_to(RaceClock &clock, RaceActorId actor, uint32_t time) {
  clock.learn(take_component(actor), time);
}

void RaceOrder::learn(uint32_t warp, Lanes lanes, RaceActorId actor, uint32_t time) {
  auto clock = std::make_shared<RaceClock>();
  add_to(*clock, actor, time);
  acquire(warp, lanes, clock);
}

void RaceOrder::commit_copies(uint32_t warp, Lanes lanes) {
  take_component(id_of(RaceActor::kCopies, warp));
  for_each_lane(lanes, [&](int l) { warps_[warp].num_copy_groups[static_cast<size_t>(l)]++; });
}

void RaceOrder::wait_for_copies(uint32_t warp, Lanes lanes, uint32_t num_pending) {
  WarpState &state = warps_[warp];
  for_each_lane(lanes, [&](int lane) {
    const auto l = static_cast<size_t>(lane);
    const uint32_t num_groups = state.num_copy_groups[l];
    const uint32_t num_done = num_groups > num_pending ? num_groups - num_pending : 0;
    state.copies_done[l] = std::max(state.copies_done[l], num_done);
  });
}

void RaceOrder::wait_for_bulk(uint32_t warp, int lane, uint32_t num_groups) {
  take_component(id_of(RaceActor::kBulk, warp));
  uint32_t &done = warps_[warp].bulk_done[static_cast<size_t>(lane)];
  done = std::max(done, num_groups);
}

void RaceOrder::fence(uint32_t warp, Lanes lanes) {
  WarpState &state = warps_[warp];
  for_each_lane(lanes, [&](int lane) {
    const auto l = static_cast<size_t>(lane);
    acquire(warp, Lanes{1} << lane, state.at_fence[l]);
    state.at_fence[l] = nullptr;
    state.fenced[l] = release(warp, Lanes{1} << lane);
  });
}

void RaceOrder::acquire_at_fence(uint32_t warp, int lane, const SharedClock &clock) {
  SharedClock &later = warps_[warp].at_fence[static_cast<size_t>(lane)];
  later = join(later, clock);
}

}  // namespace softgpu
