#include "kernels/simt/sim/race/happens_before.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace mp::host::engine::race {

namespace {

constexpr uint32_t kWarpgroup = 4;  // warps
constexpr uint32_t kWarpgroupThreads = kWarpgroup * kWarpSize;

}  // namespace

// ---------------------------------------------------------------- clocks

void Clocks::set(size_t place, uint32_t clock) {
  if (of_.size() <= place) of_.resize(place + 1);
  of_[place] = clock;
}

void Clocks::raise(size_t place, uint32_t clock) {
  set(place, std::max(at(place), clock));
}

void Clocks::unite(const Clocks &other) {
  if (of_.size() < other.of_.size()) of_.resize(other.of_.size());
  for (size_t i = 0; i < other.of_.size(); i++) of_[i] = std::max(of_[i], other.of_[i]);
}

void Clocks::intersect(const Clocks &other) {
  if (of_.size() > other.of_.size()) of_.resize(other.of_.size());
  for (size_t i = 0; i < of_.size(); i++) of_[i] = std::min(of_[i], other.of_[i]);
}

void Clocks::raise_range(size_t to, size_t from, size_t count) {
  if (of_.size() < to + count) of_.resize(to + count);
  for (size_t i = 0; i < count; i++) of_[to + i] = std::max(of_[to + i], at(from + i));
}

void Clocks::summarise(uint32_t num_warps) {
  of_warp_.assign(num_warps, 0);
  for (size_t w = 0; w < num_warps && (w + 1) * kWarpSize <= of_.size(); w++) {
    const auto lanes = of_.begin() + static_cast<std::ptrdiff_t>(w * kWarpSize);
    of_warp_[w] = *std::min_element(lanes, lanes + kWarpSize);
  }
}

// ---------------------------------------------------------------- learning

void Knowledge::begin_cluster(uint32_t num_warps) {
  num_warps_ = num_warps;
  num_threads_ = num_warps * kWarpSize;
  Clocks nothing;
  nothing.summarise(num_warps);
  clock_.assign(num_warps, 1);
  known_.assign(num_threads_, std::make_shared<const Clocks>(std::move(nothing)));
  own_.assign(num_threads_, Own{});
  memo_.fill({});
  common_.assign(num_warps / kWarpgroup + 1, Common{});
  version_ = 1;
}

size_t Knowledge::place(Agent agent, uint32_t index) const {
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
  return lane_place(index * kWarpSize);
}

/// Adds what the thread knows of itself.
void Knowledge::tell(uint32_t thread, Clocks &clocks) const {
  const Own &own = own_[thread];
  const uint32_t warp = thread / kWarpSize;
  clocks.raise(lane_place(thread), clock_[warp]);
  if (own.fenced > 0) clocks.raise(fence_place(thread), own.fenced);
  if (own.copies > 0) clocks.raise(place(Agent::copies, thread), own.copies);
  if (own.stores > 0) clocks.raise(place(Agent::stores, thread), own.stores);
  if (own.multiplies > 0) clocks.raise(place(Agent::multiplies, warp), own.multiplies);
}

void Knowledge::set(uint32_t thread, Known known) {
  known_[thread] = std::move(known);
  version_++;
}

void Knowledge::join(const Warp *warps, size_t num_warps) {
  Clocks joined;
  const Clocks *newest = nullptr;
  const uint32_t begin = static_cast<uint32_t>(warps[0].slot) * kWarpSize;
  const uint32_t end = begin + static_cast<uint32_t>(num_warps) * kWarpSize;
  for (uint32_t t = begin; t < end; t++) {
    if (known_[t].get() != newest) joined.unite(*known_[t]);
    newest = known_[t].get();
  }
  for (uint32_t t = begin; t < end; t++) tell(t, joined);
  for (uint32_t w = begin / kWarpSize; w < end / kWarpSize; w++) clock_[w]++;
  joined.summarise(num_warps_);
  const Known known = std::make_shared<const Clocks>(std::move(joined));
  for (uint32_t t = begin; t < end; t++) set(t, known);
}

void Knowledge::release(uint32_t thread, Released &released) {
  if (released.newest != known_[thread]) {
    released.newest = known_[thread];
    released.clocks.unite(*known_[thread]);
  }
  tell(thread, released.clocks);
  clock_[thread / kWarpSize]++;
}

Known Knowledge::publish(const Released &released) const {
  Clocks clocks = released.clocks;
  clocks.summarise(num_warps_);
  return std::make_shared<const Clocks>(std::move(clocks));
}

void Knowledge::acquire(uint32_t thread, const Known &acquired) {
  for (const Memo &memo : memo_)
    if (memo.known == known_[thread] && memo.acquired == acquired) return set(thread, memo.result);
  Clocks clocks = *known_[thread];
  clocks.unite(*acquired);
  clocks.summarise(num_warps_);
  Memo &memo = memo_[next_memo_++ % memo_.size()];
  memo = {known_[thread], acquired, std::make_shared<const Clocks>(std::move(clocks))};
  set(thread, memo.result);
}

void Knowledge::fence(uint32_t thread) {
  Clocks clocks = *known_[thread];
  clocks.raise_range(fence_place(0), lane_place(0), num_threads_);
  clocks.summarise(num_warps_);
  own_[thread].fenced = clock_[thread / kWarpSize]++;
  set(thread, std::make_shared<const Clocks>(std::move(clocks)));
}

void Knowledge::complete(uint32_t thread, Agent agent, uint32_t clock) {
  Own &own = own_[thread];
  uint32_t &known = agent == Agent::copies   ? own.copies
                    : agent == Agent::stores ? own.stores
                                             : own.multiplies;
  known = std::max(known, clock);
  version_++;
}

void Knowledge::complete_loads(uint32_t mbarrier, uint32_t num_phases, Released &released) const {
  released.clocks.raise(place(Agent::loads, mbarrier), num_phases);
}

// ---------------------------------------------------------------- knowing

template <class Test>
bool Knowledge::every_place(const Event &event, Test test) const {
  const size_t first = place(event.agent, event.index);
  uint32_t members = 1;
  if (event.agent == Agent::warp) members = event.lanes;
  if (event.agent == Agent::multiplies) members = (1u << kWarpgroup) - 1;
  for (; members != 0; members &= members - 1)
    if (!test(first + static_cast<size_t>(std::countr_zero(members)))) return false;
  return true;
}

uint32_t Knowledge::own_clock(uint32_t thread, size_t p) const {
  if (thread == kNobody) return 0;
  const Own &own = own_[thread];
  const uint32_t warp = thread / kWarpSize;
  if (p == lane_place(thread)) return clock_[warp];
  if (p == fence_place(thread)) return own.fenced;
  if (p == place(Agent::copies, thread)) return own.copies;
  if (p == place(Agent::stores, thread)) return own.stores;
  if (p == place(Agent::multiplies, warp)) return own.multiplies;
  return 0;
}

/// Lane by lane, or asynchronous.
bool Knowledge::knows_in_part(const Knower &who, const Event &event) const {
  return every_place(event, [&](size_t p) {
    return event.clock <= who.known->at(p) || event.clock <= own_clock(who.thread, p);
  });
}

bool Knowledge::knows_fenced(const Knower &who, const Event &event) const {
  if (event.agent != Agent::warp) return true;
  return every_place(event, [&](size_t p) {
    const size_t fence = fence_place(static_cast<uint32_t>(p));
    return event.clock <= who.known->at(fence) || event.clock <= own_clock(who.thread, fence);
  });
}

const Clocks &Knowledge::common(uint32_t first_warp) {
  Common &common = common_[first_warp / kWarpgroup];
  if (common.version != version_) {
    common.clocks = common_clocks(first_warp * kWarpSize);
    common.version = version_;
  }
  return common.clocks;
}

/// What all threads of a warpgroup know, each its own part included.
Clocks Knowledge::common_clocks(uint32_t first_thread) const {
  struct Holders {
    const Clocks *known;
    uint32_t count;
  };
  std::vector<Holders> all;
  const auto holders_of = [&](uint32_t t) {
    const auto has_same = [&](const Holders &h) { return h.known == known_[t].get(); };
    return std::find_if(all.begin(), all.end(), has_same);
  };
  for (uint32_t t = first_thread; t < first_thread + kWarpgroupThreads; t++) {
    const auto found = holders_of(t);
    found == all.end() ? all.push_back({known_[t].get(), 1}) : void(found->count++);
  }
  Clocks common = *all.front().known;
  for (const Holders &holders : all) common.intersect(*holders.known);
  for (uint32_t t = first_thread; t < first_thread + kWarpgroupThreads; t++)
    for (const size_t p : {lane_place(t), fence_place(t), place(Agent::copies, t)}) {
      uint32_t least = std::max(known_[t]->at(p), own_clock(t, p));
      for (const Holders &holders : all)
        if (holders.known != known_[t].get() || holders.count > 1)
          least = std::min(least, holders.known->at(p));
      common.set(p, least);
    }
  common.summarise(num_warps_);
  return common;
}

}  // namespace mp::host::engine::race
