#include "softgpu/machine/race_order.h"

#include <algorithm>

#include "softgpu/machine/block.h"
#include "softgpu/machine/global_races.h"
#include "softgpu/machine/race_shadow.h"

namespace softgpu {

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
    num_components_ += actor_of(id) <= RaceActor::kStores ? kWarpSize : 1;
  }
  return components_[id];
}

bool RaceOrder::is_known(const RaceAccess &access, const SharedClock &clock) const {
  const bool is_own = is_own_cluster(access);
  if (!is_own && contains(ended_, access.cluster)) return true;
  if (!clock) return false;
  if (!is_own && contains(clock->ended, access.cluster)) return true;
  const SharedClock of_other = is_own ? nullptr : clock->of_cluster(access.cluster);
  const RaceClock *times = is_own ? clock.get() : of_other.get();
  const uint32_t first = is_own ? component_of(access.actor) : access.component;
  if (times == nullptr || first == kNoComponent) return false;
  bool is_known = true;
  for_each_lane(access.lanes, [&](int l) {
    is_known &= (*times)[first + static_cast<uint32_t>(l)] >= access.time;
  });
  return is_known;
}

bool RaceOrder::is_own_warp(const RaceAccess &access, uint32_t warp) const {
  return is_own_cluster(access) && actor_of(access.actor) <= RaceActor::kStores &&
         index_of(access.actor) == warp;
}

bool RaceOrder::happened_before(const RaceAccess &access, uint32_t warp, int lane) const {
  const WarpState &state = warps_[warp];
  const auto own = static_cast<size_t>(lane);
  RaceAccess of_others = access;
  if (is_own_warp(access, warp) && (access.lanes >> lane & 1) != 0) {
    // The lanes of a statement update memory in any order; this one may be the last.
    if (access.observes) return true;
    of_others.lanes &= ~(Lanes{1} << lane);
    const RaceActor actor = actor_of(access.actor);
    if (actor == RaceActor::kCopies && state.copies_done[own] < access.time) return false;
    if (actor == RaceActor::kBulk && state.bulk_done[own] < access.time) return false;
    if (actor == RaceActor::kStores && state.stores_done[own] < access.time) return false;
  }
  return of_others.lanes == 0 || is_known(of_others, state.known[own]);
}

bool RaceOrder::happened_before_all(const RaceAccess &access, uint32_t warp, Lanes lanes) const {
  // Lanes with the same clock have the same result, except for accesses of their own warp.
  const bool is_own = is_own_warp(access, warp);
  const SharedClock *last = nullptr;
  bool is_known = true;
  for_each_lane(lanes, [&](int l) {
    const SharedClock &clock = warps_[warp].known[static_cast<size_t>(l)];
    if (!is_known || (!is_own && last != nullptr && *last == clock)) return;
    last = &clock;
    is_known = happened_before(access, warp, l);
  });
  return is_known;
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
  add(RaceActor::kStores, state.stores_done);
}

SharedClock RaceOrder::release(uint32_t warp, Lanes lanes) {
  auto clock = std::make_shared<RaceClock>();
  for_each_value(warps_[warp].known, lanes, [&](const SharedClock &known, Lanes) {
    if (known) clock->join(*known);
  });
  add_own(*clock, warp, lanes);
  warps_[warp].time++;
  return clock;
}

void RaceOrder::acquire(uint32_t warp, Lanes lanes, const SharedClock &clock) {
  auto &known = warps_[warp].known;
  for_each_value(known, lanes, [&](const SharedClock &before, Lanes same) {
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

void RaceOrder::wait_for_bulk(uint32_t warp, int lane, uint32_t num_groups, bool until_read) {
  const auto finish = [&](RaceActor actor, Times &done) {
    take_component(id_of(actor, warp));
    uint32_t &of_lane = done[static_cast<size_t>(lane)];
    of_lane = std::max(of_lane, num_groups);
  };
  finish(RaceActor::kBulk, warps_[warp].bulk_done);
  if (!until_read) finish(RaceActor::kStores, warps_[warp].stores_done);
}

void RaceOrder::fence(uint32_t warp, Lanes lanes) {
  for_each_lane(lanes, [&](int l) {
    const Lanes lane = Lanes{1} << l;
    SharedClock &known = warps_[warp].known[static_cast<size_t>(l)];
    if (known && known->at_fence) {
      RaceClock acquired = *known;
      const SharedClock at_fence = std::exchange(acquired.at_fence, nullptr);
      acquired.join(*at_fence);
      known = share(std::move(acquired));
    }
    RaceClock fenced = *release(warp, lane), clock;
    fenced.fenced = fenced.at_fence = nullptr;
    clock.fenced = share(std::move(fenced));
    acquire(warp, lane, share(std::move(clock)));
  });
}

void RaceOrder::fence_proxy(uint32_t warp, Lanes lanes) {
  for_each_lane(lanes, [&](int l) {
    RaceClock fenced = *release(warp, Lanes{1} << l), clock;
    fenced.fenced = fenced.proxy_fenced = fenced.at_fence = nullptr;
    clock.proxy_fenced = share(std::move(fenced));
    acquire(warp, Lanes{1} << l, share(std::move(clock)));
  });
}

void RaceOrder::acquire_at_fence(uint32_t warp, int lane, const SharedClock &at_fence) {
  if (!at_fence) return;
  RaceClock clock;
  clock.at_fence = at_fence;
  if (at_fence->at_fence) {  // deferred by the releasing lane, whose own fence is missing
    auto released = std::make_shared<RaceClock>(*at_fence);
    released->at_fence = nullptr;
    clock.at_fence = std::move(released);
  }
  acquire(warp, Lanes{1} << lane, share(std::move(clock)));
}

// ---- grids

uint32_t GlobalRaces::add_grid(std::shared_ptr<const Grid> grid) {
  const auto guard = lock();
  Entry entry{.first_cluster = num_clusters_, .grid = std::move(grid)};
  // The grid begins when each block of the previous grid has allowed it.
  if (!grids_.empty()) {
    const Entry &previous = grids_.back();
    entry.ended_before = previous.allows_before_wait ? previous.ended_before : previous.waited_for;
  }
  num_clusters_ +=
      static_cast<uint32_t>(volume(entry.grid->num_blocks) / entry.grid->blocks_per_cluster());
  grids_.push_back(std::move(entry));
  return grids_.back().first_cluster;
}

void GlobalRaces::note_ended(size_t num_ended) {
  if (num_ended < 2) return;
  const auto guard = lock();
  const uint32_t first_kept = grids_[num_ended - 1].first_cluster;
  std::erase_if(pages_, [&](const auto &page) { return page.second.newest_cluster < first_kept; });
  last_page_ = nullptr;
}

size_t GlobalRaces::index_of(uint32_t cluster) const {
  const auto after = std::ranges::upper_bound(grids_, cluster, {}, &Entry::first_cluster);
  return static_cast<size_t>(after - grids_.begin()) - 1;
}

const Grid &GlobalRaces::grid_of(uint32_t *cluster) const {
  const Entry &entry = grids_[index_of(*cluster)];
  *cluster -= entry.first_cluster;
  return *entry.grid;
}

SharedClusters GlobalRaces::ended_before(uint32_t cluster) {
  const auto guard = lock();
  return grids_[index_of(cluster)].ended_before;
}

SharedClusters GlobalRaces::wait_for_previous(uint32_t cluster) {
  const auto guard = lock();
  const size_t index = index_of(cluster);
  Entry &entry = grids_[index];
  if (entry.waited_for) return entry.waited_for;
  ClusterRanges ended;
  if (index > 0) {
    const Entry &previous = grids_[index - 1];
    const SharedClusters &earlier =
        previous.waited_for ? previous.waited_for : previous.ended_before;
    if (earlier) ended = *earlier;
    ended.add(previous.first_cluster, entry.first_cluster);
  }
  entry.waited_for = std::make_shared<const ClusterRanges>(std::move(ended));
  return entry.waited_for;
}

void GlobalRaces::allow_dependents(uint32_t cluster, bool has_waited) {
  const auto guard = lock();
  grids_[index_of(cluster)].allows_before_wait |= !has_waited;
}

void RaceShadow::split(Word &word) {
  Bytes bytes;
  for (Cell &cell : bytes) {
    cell = word.cell;
    if (cell.more == 0) continue;
    cell.more = static_cast<uint32_t>(others_.size());
    others_.push_back(Others(others_[word.cell.more]));
  }
  word.bytes = static_cast<uint32_t>(bytes_.size());
  bytes_.push_back(bytes);
}

}  // namespace softgpu
