#include "kernels/simt/sim/race/detector.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/simt/sim/barriers.h"
#include "kernels/simt/sim/shared_memory.h"

namespace mp::host::engine::race {

constinit thread_local Detector *detector = nullptr;

namespace {

constexpr int kWarpgroup = 4;  // warps

uint32_t running_warp() {
  return static_cast<uint32_t>(current->warp->slot);
}
uint32_t running_thread() {
  return running_warp() * kWarpSize + static_cast<uint32_t>(current->lane);
}
uint32_t first_warp_of_running_group() {
  return running_warp() - static_cast<uint32_t>(current->warp->index % kWarpgroup);
}

/// Groups count from 0, clocks from 1.
uint32_t clock_of_group(int64_t group) {
  return static_cast<uint32_t>(group + 1);
}

}  // namespace

void Detector::begin_cluster(const Cluster &cluster) {
  cluster_ = &cluster;
  knowledge_.begin_cluster(static_cast<uint32_t>(cluster.num_warps));
  arenas_.resize(static_cast<size_t>(cluster.size));
  arena_bytes_ = SharedMemory::capacity();
  for (int b = 0; b < cluster.size; b++) {
    Arena &arena = arenas_[static_cast<size_t>(b)];
    arena.begin = cluster.blocks[b].smem->begin();
    arena.granules.resize(arena_bytes_ / kGranuleBytes);
    std::fill_n(arena.granules.begin(), std::exchange(arena.used, 0u), Granule{});
  }
  readers_.assign(1, Reader{});
  free_readers_ = 0;
  mbarriers_.clear();
  named_barriers_.assign(static_cast<size_t>(cluster.size * kNamedBarriers), Released{});
}

// ---------------------------------------------------------------- accesses

Event Detector::event_of_thread(const void *code) const {
  const uint32_t warp = running_warp();
  return {Agent::warp, warp, knowledge_.clock_of_warp(warp), 1u << current->lane, code};
}

void Detector::access(const void *address, size_t bytes, Access what, const void *code) {
  check_range(address, bytes, {event_of_thread(code), what, running()});
}

void Detector::copy_started(const void *smem, size_t bytes, const void *code) {
  const Event event{Agent::copies, running_thread(), clock_of_group(current->copy_group), 0, code};
  check_range(smem, bytes, {event, Access::write, running()});
}

void Detector::load_started(const Mbarrier &bar, const void *smem, size_t bytes, const void *code) {
  check_initialised(bar);
  const Event event{Agent::loads, static_cast<uint32_t>(bar.id), clock_of_group(bar.num_complete),
                    0, code};
  check_range(smem, bytes, {event, Access::write, running()});
}

void Detector::store_started(const void *smem, size_t bytes, int64_t group, const void *code) {
  const Event event{Agent::stores, running_thread(), clock_of_group(group), 0, code};
  check_range(smem, bytes, {event, Access::read, running(), true});
}

void Detector::multiply_started(const void *smem, size_t bytes, int64_t group, const void *code) {
  const uint32_t warp = first_warp_of_running_group();
  const Event event{Agent::multiplies, warp, clock_of_group(group), 0, code};
  check_range(smem, bytes, {event, Access::read, knowledge_.warpgroup(warp), true});
}

void Detector::completed(Agent agent, int64_t groups) {
  if (groups > 0) knowledge_.complete(running_thread(), agent, static_cast<uint32_t>(groups));
}

void Detector::fenced() {
  knowledge_.fence(running_thread());
}

Knowledge::Knower Detector::running() const {
  return knowledge_.thread(running_thread());
}

void Detector::check_range(const void *address, size_t bytes, const Now &now) {
  Arena &arena = arenas_[arena_of(address)];
  const size_t begin = offset_in(arena, address);
  const size_t end = std::min(begin + bytes, arena_bytes_);
  arena.used = std::max(arena.used, (end - 1) / kGranuleBytes + 1);
  for (size_t g = begin / kGranuleBytes; g * kGranuleBytes < end; g++)
    check(arena, arena.granules[g], now);
}

void Detector::check(const Arena &arena, Granule &granule, const Now &now) {
  if (!knowledge_.knows(now.knower, granule.write))
    report_race(arena, granule, now, granule.write, Access::write);
  if (now.needs_fence && !knowledge_.knows_fenced(now.knower, granule.write))
    report_unfenced(arena, granule, now);
  if (now.access == Access::read) return add_reader(granule, now);
  for (uint32_t r = granule.readers; r != 0; r = readers_[r].next)
    if (!knowledge_.knows(now.knower, readers_[r].event))
      report_race(arena, granule, now, readers_[r].event, Access::read);
  forget_readers(granule);
  granule.write = now.event;
}

/// Takes the place of a reader that is ordered before: what conflicts with that one and comes
/// later conflicts with this one too.
void Detector::add_reader(Granule &granule, const Now &now) {
  for (uint32_t r = granule.readers; r != 0; r = readers_[r].next) {
    Event &reader = readers_[r].event;
    if (reader.agent == now.event.agent && reader.index == now.event.index &&
        reader.clock == now.event.clock) {
      reader.lanes |= now.event.lanes;
      return;
    }
    if (knowledge_.knows(now.knower, reader)) {
      reader = now.event;
      return;
    }
  }
  uint32_t slot = free_readers_;
  if (slot != 0) {
    free_readers_ = readers_[slot].next;
  } else {
    slot = static_cast<uint32_t>(readers_.size());
    readers_.emplace_back();
  }
  readers_[slot] = {now.event, granule.readers};
  granule.readers = slot;
}

void Detector::forget_readers(Granule &granule) {
  while (granule.readers != 0) {
    const uint32_t slot = granule.readers;
    granule.readers = readers_[slot].next;
    readers_[slot].next = free_readers_;
    free_readers_ = slot;
  }
}

// ---------------------------------------------------------------- barriers

Detector::MbarrierState &Detector::state_of(const Mbarrier &bar) {
  const size_t id = static_cast<size_t>(bar.id);
  if (mbarriers_.size() <= id) mbarriers_.resize(id + 1);
  return mbarriers_[id];
}

void Detector::initialised(const Mbarrier &bar) {
  state_of(bar).initialised = event_of_thread(nullptr);
}

void Detector::check_initialised(const Mbarrier &bar) {
  const Event &event = state_of(bar).initialised;
  if (knowledge_.knows(running(), event)) return;
  report_initialisation(bar, event);
}

void Detector::arrived(const Mbarrier &bar) {
  check_initialised(bar);
  knowledge_.release(running_thread(), state_of(bar).released);
}

/// Also told are the loads: those who wait for a phase know what its bytes were.
void Detector::completed(const Mbarrier &bar) {
  MbarrierState &state = state_of(bar);
  knowledge_.complete_loads(static_cast<uint32_t>(bar.id), static_cast<uint32_t>(bar.num_complete),
                            state.released);
  state.published = knowledge_.publish(state.released);
  learn(*bar.block, bar.waiting, state.published);
}

void Detector::waited(const Mbarrier &bar) {
  check_initialised(bar);
  const MbarrierState &state = state_of(bar);
  if (state.published != nullptr) knowledge_.acquire(running_thread(), state.published);
}

void Detector::arrived(const NamedBarrier &bar) {
  knowledge_.release(running_thread(), released_at(bar));
}

void Detector::completed(const NamedBarrier &bar) {
  Released &released = released_at(bar);
  learn(*current->block, bar.waiting, knowledge_.publish(released));
  released = {};
}

/// These lanes are asleep in a wait that is over.
void Detector::learn(const Block &block, const uint32_t *waiting, const Known &told) {
  for (int w = 0; w < block.num_warps(); w++)
    for (uint32_t lanes = waiting[w]; lanes != 0; lanes &= lanes - 1)
      knowledge_.acquire(
          static_cast<uint32_t>(block.warps[w].slot * kWarpSize + std::countr_zero(lanes)), told);
}

Released &Detector::released_at(const NamedBarrier &bar) {
  const Block &block = *current->block;
  return named_barriers_[static_cast<size_t>(block.rank * kNamedBarriers +
                                             (&bar - block.barriers->named))];
}

}  // namespace mp::host::engine::race
