#include "kernels/simt/host/race/detector.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string>

#include "kernels/simt/host/race.h"
#include "kernels/simt/host/shared_memory.h"

namespace mp::host::engine::race {

constinit thread_local Detector *detector = nullptr;

namespace {

constexpr size_t kGranuleBytes = 2;  // the smallest element of a kernel

/// "libmpcore.so+0x1234", for addr2line.
std::string code_address(const void *code) {
  Dl_info info;
  if (dladdr(code, &info) == 0) return "an unknown place";
  const char *const slash = std::strrchr(info.dli_fname, '/');
  char offset[24];
  // A return address: the call, and the line, end just before it.
  std::snprintf(offset, sizeof offset, "+0x%zx",
                static_cast<size_t>(static_cast<const char *>(code) - 1 -
                                    static_cast<const char *>(info.dli_fbase)));
  return (slash != nullptr ? slash + 1 : info.dli_fname) + std::string(offset);
}

}  // namespace

void Detector::begin_block(const Block &block) {
  const size_t num_threads = static_cast<size_t>(block.num_threads);
  arena_ = block.smem->begin();
  arena_bytes_ = SharedMemory::capacity();
  num_warps_ = static_cast<uint32_t>(num_threads / kWarpSize);
  num_agents_ = copies_of(static_cast<uint32_t>(num_threads));
  clock_.assign(num_warps_, 1);
  landed_.assign(num_threads, 0);
  known_.assign(num_warps_ * num_agents_, 0);
  joined_.resize(num_agents_);
  granules_.resize(arena_bytes_ / kGranuleBytes);
  std::fill_n(granules_.begin(), granules_used_, Granule{});
  granules_used_ = 0;
  readers_.assign(1, Reader{});
  free_readers_ = 0;
}

void Detector::join(const Warp *warps, size_t num_warps) {
  std::fill(joined_.begin(), joined_.end(), 0);
  for (size_t i = 0; i < num_warps; i++) {
    const uint32_t *const known = known_to(static_cast<uint32_t>(warps[i].index));
    for (uint32_t a = 0; a < num_agents_; a++) joined_[a] = std::max(joined_[a], known[a]);
  }
  for (size_t i = 0; i < num_warps; i++) {
    const uint32_t warp = static_cast<uint32_t>(warps[i].index);
    joined_[warp] = clock_[warp]++;
    for (uint32_t t = warp * kWarpSize; t < (warp + 1) * kWarpSize; t++)
      joined_[copies_of(t)] = landed_[t];
  }
  for (size_t i = 0; i < num_warps; i++)
    std::copy(joined_.begin(), joined_.end(), known_to(static_cast<uint32_t>(warps[i].index)));
}

void Detector::access(const void *address, size_t bytes, Access what, const void *code) {
  const uint32_t warp = static_cast<uint32_t>(current->warp->index);
  check_range(address, bytes, {warp, clock_[warp], 1u << current->lane, code}, what);
}

/// The copy may write as soon as it is started, so all that it conflicts with must be known to the
/// thread by now.  Two copies are never ordered by being started one after the other.
void Detector::copy_started(const void *smem, size_t bytes, const void *code) {
  const uint32_t agent = copies_of(static_cast<uint32_t>(current->index));
  const uint32_t clock = static_cast<uint32_t>(current->copy_group + 1);  // groups count from 0
  check_range(smem, bytes, {agent, clock, 0, code}, Access::write);
}

void Detector::copies_landed(int64_t groups) {
  uint32_t &landed = landed_[static_cast<size_t>(current->index)];
  landed = std::max(landed, static_cast<uint32_t>(std::max<int64_t>(groups, 0)));
}

/// Is that event ordered before what the running thread does now?
bool Detector::is_ordered(const Event &before) const {
  const uint32_t thread = static_cast<uint32_t>(current->index);
  const uint32_t warp = thread / kWarpSize;
  if (before.clock <= known_[warp * num_agents_ + before.agent]) return true;
  if (before.agent == warp) return before.lanes == 1u << current->lane;
  return before.agent == copies_of(thread) && before.clock <= landed_[thread];
}

void Detector::check_range(const void *address, size_t bytes, const Event &now, Access what) {
  const size_t begin = offset_of(address);
  const size_t end = std::min(begin + bytes, arena_bytes_);
  granules_used_ = std::max(granules_used_, (end - 1) / kGranuleBytes + 1);
  for (size_t g = begin / kGranuleBytes; g * kGranuleBytes < end; g++) check(g, now, what);
}

void Detector::check(size_t index, const Event &now, Access what) {
  Granule &granule = granules_[index];
  if (!is_ordered(granule.write)) report(index, now, what, granule.write, Access::write);
  if (what == Access::read) {
    add_reader(granule, now);
    return;
  }
  for (uint32_t r = granule.readers; r != 0; r = readers_[r].next)
    if (!is_ordered(readers_[r].event)) report(index, now, what, readers_[r].event, Access::read);
  forget_readers(granule);
  granule.write = now;
}

/// Takes the place of a reader that is ordered before: what conflicts with that one and comes
/// later conflicts with this one too.
void Detector::add_reader(Granule &granule, const Event &now) {
  for (uint32_t r = granule.readers; r != 0; r = readers_[r].next) {
    Event &reader = readers_[r].event;
    if (reader.agent == now.agent && reader.clock == now.clock) {
      reader.lanes |= now.lanes;
      return;
    }
    if (is_ordered(reader)) {
      reader = now;
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
  readers_[slot] = {now, granule.readers};
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

/// Of several lanes, the first that is not the running thread.
std::string Detector::actor(const Event &event) const {
  if (event.agent >= num_warps_)
    return "cp.async of thread " + std::to_string(event.agent - num_warps_);
  const bool is_own_warp = event.agent == static_cast<uint32_t>(current->warp->index);
  const uint32_t others = is_own_warp ? event.lanes & ~(1u << current->lane) : event.lanes;
  const int lane = std::countr_zero(others != 0 ? others : event.lanes);
  return "thread " + std::to_string(static_cast<int>(event.agent) * kWarpSize + lane);
}

std::string Detector::describe(size_t granule, const Event &now, Access what, const Event &before,
                               Access what_before) const {
  const auto verb = [](Access access) { return access == Access::read ? "read" : "write"; };
  const std::string place = current->block->smem->locate(arena_ + granule * kGranuleBytes);
  return "has a race in shared " + place + ": " + verb(what) + " by " + actor(now) + " (" +
         code_address(now.code) + ") races with " + verb(what_before) + " by " + actor(before) +
         " (" + code_address(before.code) + ")";
}

void Detector::report(size_t granule, const Event &now, Access what, const Event &before,
                      Access what_before) const {
  char text[512];  // violation() leaves this stack for good, so nothing on it may own memory
  std::snprintf(text, sizeof text, "%s", describe(granule, now, what, before, what_before).c_str());
  violation({}, "%s", text);
}

// ---------------------------------------------------------------- what the engine calls

void begin_block(const Block &block) {
  static thread_local Detector detector_of_this_thread;
  detector = &detector_of_this_thread;
  detector->begin_block(block);
}
void join(const Warp *warps, size_t num_warps) {
  detector->join(warps, num_warps);
}
void copy_started(const void *smem, size_t bytes, const void *code) {
  detector->copy_started(smem, bytes, code);
}
void copies_landed(int64_t groups) {
  detector->copies_landed(groups);
}

}  // namespace mp::host::engine::race
