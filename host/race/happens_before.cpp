#include "host/race/happens_before.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "host/wgmma.h"

namespace mp::host::engine::race {

// ---------------------------------------------------------------- vector clocks

void VectorClock::set(size_t component, uint32_t clock) {
  if (components_.size() <= component) components_.resize(component + 1);
  components_[component] = clock;
}

void VectorClock::raise(size_t component, uint32_t clock) {
  set(component, std::max(at(component), clock));
}

void VectorClock::join(const VectorClock &other) {
  if (components_.size() < other.components_.size()) components_.resize(other.components_.size());
  for (size_t i = 0; i < other.components_.size(); i++)
    components_[i] = std::max(components_[i], other.components_[i]);
}

void VectorClock::meet(const VectorClock &other) {
  if (components_.size() > other.components_.size()) components_.resize(other.components_.size());
  for (size_t i = 0; i < components_.size(); i++)
    components_[i] = std::min(components_[i], other.components_[i]);
}

void VectorClock::raise_range(size_t to, size_t from, size_t count) {
  if (components_.size() < to + count) components_.resize(to + count);
  for (size_t i = 0; i < count; i++)
    components_[to + i] = std::max(components_[to + i], at(from + i));
}

void VectorClock::update_warp_minima(uint32_t num_warps) {
  warp_minima_.assign(num_warps, 0);
  for (size_t w = 0; w < num_warps && (w + 1) * kWarpSize <= components_.size(); w++) {
    const auto lanes = components_.begin() + static_cast<std::ptrdiff_t>(w * kWarpSize);
    warp_minima_[w] = *std::min_element(lanes, lanes + kWarpSize);
  }
}

// ---------------------------------------------------------------- synchronization

void HappensBefore::begin_cluster(uint32_t num_warps) {
  num_warps_ = num_warps;
  num_threads_ = num_warps * kWarpSize;
  VectorClock start;
  start.update_warp_minima(num_warps);
  warp_clock_.assign(num_warps, 1);
  clock_.assign(num_threads_, std::make_shared<const VectorClock>(std::move(start)));
  own_.assign(num_threads_, OwnClock{});
  memo_.fill({});
  warpgroup_clock_.assign(num_warps / kWarpsPerWarpgroup + 1, WarpgroupClock{});
  version_ = 1;
}

size_t HappensBefore::component(Agent agent, uint32_t index) const {
  const size_t threads = num_threads_;
  switch (agent) {
    case Agent::copies:
      return 2 * threads + index;
    case Agent::stores:
      return 3 * threads + index;
    case Agent::multiplies:
      return 4 * threads + index;
    case Agent::loads:
      return 4 * threads + num_warps_ + index;
    case Agent::warp:
      break;
  }
  return lane_component(index * kWarpSize);
}

void HappensBefore::add_own(uint32_t thread, VectorClock &clock) const {
  const OwnClock &own = own_[thread];
  const uint32_t warp = thread / kWarpSize;
  clock.raise(lane_component(thread), warp_clock_[warp]);
  if (own.fenced > 0) clock.raise(fence_component(thread), own.fenced);
  if (own.copies > 0) clock.raise(component(Agent::copies, thread), own.copies);
  if (own.stores > 0) clock.raise(component(Agent::stores, thread), own.stores);
  if (own.multiplies > 0) clock.raise(component(Agent::multiplies, warp), own.multiplies);
}

void HappensBefore::set(uint32_t thread, SharedClock clock) {
  clock_[thread] = std::move(clock);
  version_++;
}

void HappensBefore::join(const Warp *warps, size_t num_warps) {
  VectorClock joined;
  const VectorClock *newest = nullptr;
  const uint32_t begin = static_cast<uint32_t>(warps[0].slot) * kWarpSize;
  const uint32_t end = begin + static_cast<uint32_t>(num_warps) * kWarpSize;
  for (uint32_t t = begin; t < end; t++) {
    if (clock_[t].get() != newest) joined.join(*clock_[t]);
    newest = clock_[t].get();
  }
  for (uint32_t t = begin; t < end; t++) add_own(t, joined);
  for (uint32_t w = begin / kWarpSize; w < end / kWarpSize; w++) warp_clock_[w]++;
  joined.update_warp_minima(num_warps_);
  const SharedClock shared = std::make_shared<const VectorClock>(std::move(joined));
  for (uint32_t t = begin; t < end; t++) set(t, shared);
}

void HappensBefore::release(uint32_t thread, BarrierClock &barrier) {
  if (barrier.newest != clock_[thread]) {
    barrier.newest = clock_[thread];
    barrier.clock.join(*clock_[thread]);
  }
  add_own(thread, barrier.clock);
  warp_clock_[thread / kWarpSize]++;
}

SharedClock HappensBefore::publish(const BarrierClock &barrier) const {
  VectorClock clock = barrier.clock;
  clock.update_warp_minima(num_warps_);
  return std::make_shared<const VectorClock>(std::move(clock));
}

void HappensBefore::acquire(uint32_t thread, const SharedClock &acquired) {
  for (const Memo &memo : memo_)
    if (memo.clock == clock_[thread] && memo.acquired == acquired) return set(thread, memo.result);
  VectorClock clock = *clock_[thread];
  clock.join(*acquired);
  clock.update_warp_minima(num_warps_);
  Memo &memo = memo_[next_memo_++ % memo_.size()];
  memo = {clock_[thread], acquired, std::make_shared<const VectorClock>(std::move(clock))};
  set(thread, memo.result);
}

void HappensBefore::fence(uint32_t thread) {
  VectorClock clock = *clock_[thread];
  clock.raise_range(fence_component(0), lane_component(0), num_threads_);
  clock.update_warp_minima(num_warps_);
  own_[thread].fenced = warp_clock_[thread / kWarpSize]++;
  set(thread, std::make_shared<const VectorClock>(std::move(clock)));
}

void HappensBefore::complete(uint32_t thread, Agent agent, uint32_t clock) {
  OwnClock &own = own_[thread];
  uint32_t &completed = agent == Agent::copies   ? own.copies
                        : agent == Agent::stores ? own.stores
                                                 : own.multiplies;
  completed = std::max(completed, clock);
  version_++;
}

void HappensBefore::complete_loads(uint32_t mbarrier, uint32_t num_phases,
                                   BarrierClock &barrier) const {
  barrier.clock.raise(component(Agent::loads, mbarrier), num_phases);
}

// ---------------------------------------------------------------- order of two accesses

template <class Test>
bool HappensBefore::every_component(const Epoch &epoch, Test test) const {
  const size_t first = component(epoch.agent, epoch.index);
  uint32_t members = 1;
  if (epoch.agent == Agent::warp) members = epoch.lanes;
  if (epoch.agent == Agent::multiplies) members = (1u << kWarpsPerWarpgroup) - 1;
  for (; members != 0; members &= members - 1)
    if (!test(first + static_cast<size_t>(std::countr_zero(members)))) return false;
  return true;
}

uint32_t HappensBefore::own_clock(uint32_t thread, size_t p) const {
  if (thread == kWarpgroup) return 0;
  const OwnClock &own = own_[thread];
  const uint32_t warp = thread / kWarpSize;
  if (p == lane_component(thread)) return warp_clock_[warp];
  if (p == fence_component(thread)) return own.fenced;
  if (p == component(Agent::copies, thread)) return own.copies;
  if (p == component(Agent::stores, thread)) return own.stores;
  if (p == component(Agent::multiplies, warp)) return own.multiplies;
  return 0;
}

/// Compares lane by lane, or with an asynchronous agent.
bool HappensBefore::happened_before_in_parts(const Epoch &epoch, const Observer &observer) const {
  return every_component(epoch, [&](size_t p) {
    return epoch.clock <= observer.clock->at(p) || epoch.clock <= own_clock(observer.thread, p);
  });
}

bool HappensBefore::fenced_before(const Epoch &epoch, const Observer &observer) const {
  if (epoch.agent != Agent::warp) return true;
  return every_component(epoch, [&](size_t p) {
    const size_t fence = fence_component(static_cast<uint32_t>(p));
    return epoch.clock <= observer.clock->at(fence) ||
           epoch.clock <= own_clock(observer.thread, fence);
  });
}

const VectorClock &HappensBefore::warpgroup_clock(uint32_t first_warp) {
  WarpgroupClock &warpgroup = warpgroup_clock_[first_warp / kWarpsPerWarpgroup];
  if (warpgroup.version != version_) {
    warpgroup.clock = meet_of_warpgroup(first_warp * kWarpSize);
    warpgroup.version = version_;
  }
  return warpgroup.clock;
}

/// Returns the meet of the clocks of all threads, including their own components.
VectorClock HappensBefore::meet_of_warpgroup(uint32_t first_thread) const {
  struct Holders {
    const VectorClock *clock;
    uint32_t count;
  };
  std::vector<Holders> all;
  const auto holders_of = [&](uint32_t t) {
    const auto has_same = [&](const Holders &h) { return h.clock == clock_[t].get(); };
    return std::find_if(all.begin(), all.end(), has_same);
  };
  for (uint32_t t = first_thread; t < first_thread + kWarpgroupThreads; t++) {
    const auto found = holders_of(t);
    found == all.end() ? all.push_back({clock_[t].get(), 1}) : void(found->count++);
  }
  VectorClock met = *all.front().clock;
  for (const Holders &holders : all) met.meet(*holders.clock);
  for (uint32_t t = first_thread; t < first_thread + kWarpgroupThreads; t++)
    for (const size_t p : {lane_component(t), fence_component(t), component(Agent::copies, t)}) {
      uint32_t least = std::max(clock_[t]->at(p), own_clock(t, p));
      for (const Holders &holders : all)
        if (holders.clock != clock_[t].get() || holders.count > 1)
          least = std::min(least, holders.clock->at(p));
      met.set(p, least);
    }
  met.update_warp_minima(num_warps_);
  return met;
}

}  // namespace mp::host::engine::race
