#include "host/race/detector.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "host/barriers.h"
#include "host/shared_memory.h"
#include "host/wgmma.h"

namespace mp::host::engine::race {

constinit thread_local Detector *detector = nullptr;

namespace {

uint32_t running_warp() {
  return static_cast<uint32_t>(current->warp->slot);
}
uint32_t running_thread() {
  return running_warp() * kWarpSize + static_cast<uint32_t>(current->lane);
}
uint32_t first_warp_of_running_group() {
  return running_warp() - static_cast<uint32_t>(current->warp->index % kWarpsPerWarpgroup);
}

/// Converts a group, counted from 0, to a clock, counted from 1.
uint32_t clock_of_group(int64_t group) {
  return static_cast<uint32_t>(group + 1);
}

}  // namespace

void Detector::begin_cluster(const Cluster &cluster) {
  cluster_ = &cluster;
  happens_before_.begin_cluster(static_cast<uint32_t>(cluster.num_warps));
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
  named_barriers_.assign(static_cast<size_t>(cluster.size * kNamedBarriers), BarrierClock{});
}

// ---------------------------------------------------------------- accesses

Epoch Detector::epoch_of_thread(const void *code) const {
  const uint32_t warp = running_warp();
  return {Agent::warp, warp, happens_before_.clock_of_warp(warp), 1u << current->lane, code};
}

void Detector::access(const void *address, size_t bytes, Access what, const void *code) {
  check_range(address, bytes, {epoch_of_thread(code), what, running()});
}

void Detector::copy_started(const void *smem, size_t bytes, const void *code) {
  const Epoch epoch{Agent::copies, running_thread(), clock_of_group(current->copy_group), 0, code};
  check_range(smem, bytes, {epoch, Access::write, running()});
}

void Detector::load_started(const Mbarrier &bar, const void *smem, size_t bytes, const void *code) {
  check_initialized(bar);
  const Epoch epoch{Agent::loads, static_cast<uint32_t>(bar.id), clock_of_group(bar.num_complete),
                    0, code};
  check_range(smem, bytes, {epoch, Access::write, running()});
}

void Detector::store_started(const void *smem, size_t bytes, int64_t group, const void *code) {
  const Epoch epoch{Agent::stores, running_thread(), clock_of_group(group), 0, code};
  check_range(smem, bytes, {epoch, Access::read, running(), true});
}

void Detector::multiply_started(const void *smem, size_t bytes, int64_t group, const void *code) {
  const uint32_t warp = first_warp_of_running_group();
  const Epoch epoch{Agent::multiplies, warp, clock_of_group(group), 0, code};
  check_range(smem, bytes, {epoch, Access::read, happens_before_.warpgroup(warp), true});
}

void Detector::completed(Agent agent, int64_t groups) {
  if (groups > 0) happens_before_.complete(running_thread(), agent, static_cast<uint32_t>(groups));
}

void Detector::fenced() {
  happens_before_.fence(running_thread());
}

HappensBefore::Observer Detector::running() const {
  return happens_before_.thread(running_thread());
}

void Detector::check_range(const void *address, size_t bytes, const Operation &operation) {
  Arena &arena = arenas_[arena_of(address)];
  const size_t begin = offset_in(arena, address);
  const size_t end = std::min(begin + bytes, arena_bytes_);
  arena.used = std::max(arena.used, (end - 1) / kGranuleBytes + 1);
  for (size_t g = begin / kGranuleBytes; g * kGranuleBytes < end; g++)
    check(arena, arena.granules[g], operation);
}

void Detector::check(const Arena &arena, Granule &granule, const Operation &operation) {
  if (!happens_before_.happened_before(granule.write, operation.observer))
    report_race(arena, granule, operation, granule.write, Access::write);
  if (operation.needs_fence && !happens_before_.fenced_before(granule.write, operation.observer))
    report_unfenced(arena, granule, operation);
  if (operation.access == Access::read) return add_reader(granule, operation);
  for (uint32_t r = granule.readers; r != 0; r = readers_[r].next)
    if (!happens_before_.happened_before(readers_[r].epoch, operation.observer))
      report_race(arena, granule, operation, readers_[r].epoch, Access::read);
  forget_readers(granule);
  granule.write = operation.epoch;
}

/// Adds a reader.  It replaces a reader that happened before it: a later write that conflicts with
/// the old reader also conflicts with the new one.
void Detector::add_reader(Granule &granule, const Operation &operation) {
  for (uint32_t r = granule.readers; r != 0; r = readers_[r].next) {
    Epoch &reader = readers_[r].epoch;
    if (reader.agent == operation.epoch.agent && reader.index == operation.epoch.index &&
        reader.clock == operation.epoch.clock) {
      reader.lanes |= operation.epoch.lanes;
      return;
    }
    if (happens_before_.happened_before(reader, operation.observer)) {
      reader = operation.epoch;
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
  readers_[slot] = {operation.epoch, granule.readers};
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

void Detector::initialized(const Mbarrier &bar) {
  state_of(bar).initialized = epoch_of_thread(nullptr);
}

void Detector::check_initialized(const Mbarrier &bar) {
  const Epoch &epoch = state_of(bar).initialized;
  if (happens_before_.happened_before(epoch, running())) return;
  report_initialization(bar, epoch);
}

void Detector::arrived(const Mbarrier &bar) {
  check_initialized(bar);
  happens_before_.release(running_thread(), state_of(bar).released);
}

/// Completes a phase: waits acquire its TMA loads and all releases.
void Detector::completed(const Mbarrier &bar) {
  MbarrierState &state = state_of(bar);
  happens_before_.complete_loads(static_cast<uint32_t>(bar.id),
                                 static_cast<uint32_t>(bar.num_complete), state.released);
  state.phase_clock = happens_before_.publish(state.released);
  acquire(*bar.block, bar.waiting, state.phase_clock);
}

void Detector::waited(const Mbarrier &bar) {
  check_initialized(bar);
  const MbarrierState &state = state_of(bar);
  if (state.phase_clock != nullptr) happens_before_.acquire(running_thread(), state.phase_clock);
}

void Detector::arrived(const NamedBarrier &bar) {
  happens_before_.release(running_thread(), released_at(bar));
}

void Detector::completed(const NamedBarrier &bar) {
  BarrierClock &released = released_at(bar);
  acquire(*current->block, bar.waiting, happens_before_.publish(released));
  released = {};
}

/// Acquires for the lanes that sleep in a wait that is now complete.
void Detector::acquire(const Block &block, const uint32_t *waiting, const SharedClock &clock) {
  for (int w = 0; w < block.num_warps(); w++)
    for (uint32_t lanes = waiting[w]; lanes != 0; lanes &= lanes - 1)
      happens_before_.acquire(
          static_cast<uint32_t>(block.warps[w].slot * kWarpSize + std::countr_zero(lanes)), clock);
}

BarrierClock &Detector::released_at(const NamedBarrier &bar) {
  const Block &block = *current->block;
  return named_barriers_[static_cast<size_t>(block.rank * kNamedBarriers +
                                             (&bar - block.barriers->named))];
}

}  // namespace mp::host::engine::race
