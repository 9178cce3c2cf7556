// mbarriers and named barriers in the simulator.
//
// An mbarrier is a word in shared memory, as on the device.  The simulator keeps a copy of the
// word, to detect kernels that overwrite it.  Waiting threads sleep instead of polling.
#include "host/barriers.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "host/shared_memory.h"
#include "kernels/simt/sm90_barrier.h"

namespace mp::host {

namespace engine {

namespace {

constexpr int kMaxCount = (1 << 20) - 1;  // arrivals; absolute number of bytes

/// Returns a text like "full + 8 bytes".
Text name_of(const Mbarrier &bar) {
  const SharedMemory &smem = *bar.block->smem;
  return smem.locate(smem.at(bar.offset));
}

MbarrierWord word_of(const Mbarrier &bar) {
  return std::bit_cast<MbarrierWord>(bar.word);
}

void store(Mbarrier &bar, MbarrierWord word) {
  bar.word = std::bit_cast<uint64_t>(word);
  std::memcpy(bar.block->smem->at(bar.offset), &bar.word, sizeof bar.word);
}

Mbarrier *find(Block &block, uint32_t offset) {
  const std::vector<uint32_t> &offsets = block.barriers->offsets;
  const auto found = std::find(offsets.begin(), offsets.end(), offset);
  if (found == offsets.end()) return nullptr;
  return &block.barriers->mbarriers[static_cast<size_t>(found - offsets.begin())];
}

/// Location of an mbarrier.
struct MbarrierAddress {
  Block &block;
  uint32_t offset;
};
MbarrierAddress locate_mbarrier(SmemAddress address, const char *primitive, source_location where) {
  Block &block = block_of(address, primitive, where);
  const std::byte *const memory = smem_at(block, address, sizeof(uint64_t), primitive, where);
  const uint32_t offset = static_cast<uint32_t>(memory - block.smem->begin());
  if (offset % sizeof(uint64_t) != 0)
    violation(where, "passes an mbarrier to %s that is not 8-byte aligned", primitive);
  return {block, offset};
}

void check_own(SmemAddress address, const char *primitive, source_location where) {
  if (is_mapped(address))
    violation(where,
              "passes an address from in_block to %s, which requires an address of its own block",
              primitive);
}

enum class User {
  thread,
  async_proxy,  ///< asynchronous operation
};

Mbarrier &mbarrier_at(SmemAddress address, User user, const char *primitive,
                      source_location where) {
  const auto [block, offset] = locate_mbarrier(address, primitive, where);
  Mbarrier *const bar = find(block, offset);
  if (bar == nullptr)
    violation(where, "uses mbarrier %s in %s, which is not initialized",
              block.smem->locate(block.smem->at(offset)).text, primitive);
  if (!bar->is_fenced && (bar->initialized_by != current || user == User::async_proxy))
    violation(where,
              "uses mbarrier %s in %s, which thread %d initialized without mbarrier_init_fence",
              name_of(*bar).text, primitive, bar->initialized_by->index);
  if (std::memcmp(block.smem->at(offset), &bar->word, sizeof bar->word) != 0)
    violation(where, "finds mbarrier %s overwritten in %s", name_of(*bar).text, primitive);
  return *bar;
}

/// Stores the word and completes the phase if no arrivals or bytes are missing.
void settle(Mbarrier &bar, MbarrierWord word, source_location where) {
  if (word.pending == 0 && word.bytes < 0)
    violation(where, "completes mbarrier %s with %d bytes more than its phase expects",
              name_of(bar).text, static_cast<int>(-word.bytes));
  if (word.pending != 0 || word.bytes != 0) return store(bar, word);
  word.phase ^= 1;
  word.pending = word.arrivals;
  store(bar, word);
  bar.num_complete++;
  Block &block = *bar.block;
  for (int w = 0; w < block.num_warps(); w++)
    if (bar.waiting[w] != 0) wake(block.warps[w], std::exchange(bar.waiting[w], 0u));
}

void add_bytes(Mbarrier &bar, MbarrierWord &word, int64_t bytes, const char *primitive,
               source_location where) {
  const int64_t sum = word.bytes + bytes;
  if (std::abs(sum) > kMaxCount)
    violation(where,
              "brings the tx-count of mbarrier %s to %lld bytes in %s, which exceeds 2^20 - 1",
              name_of(bar).text, static_cast<long long>(sum), primitive);
  word.bytes = sum;
}

void arrive(SmemAddress address, uint32_t bytes, const char *primitive, source_location where) {
  Mbarrier &bar = mbarrier_at(address, User::thread, primitive, where);
  MbarrierWord word = word_of(bar);
  if (word.pending == 0)
    violation(where, "arrives at mbarrier %s in %s more than %d times in a phase",
              name_of(bar).text, primitive, static_cast<int>(word.arrivals));
  add_bytes(bar, word, bytes, primitive, where);
  word.pending--;
  settle(bar, word, where);
  may_switch(where);
}

Text describe_mbarrier(const void *object) {
  const Mbarrier &bar = *static_cast<const Mbarrier *>(object);
  const MbarrierWord word = word_of(bar);
  Text bytes{};
  if (word.bytes > 0) bytes = words(" and %d bytes", static_cast<int>(word.bytes));
  if (word.bytes < 0) bytes = words(" and has %d unexpected bytes", -static_cast<int>(word.bytes));
  return words("for mbarrier %s, whose phase %lld of parity %d lacks %d of %d arrivals%s",
               name_of(bar).text, static_cast<long long>(bar.num_complete),
               static_cast<int>(bar.num_complete % 2), static_cast<int>(word.pending),
               static_cast<int>(word.arrivals), bytes.text);
}

// ---------------------------------------------------------------- named barriers

Text describe_named(const void *object) {
  const NamedBarrier &bar = *static_cast<const NamedBarrier *>(object);
  return words("where %d of %d threads have arrived", bar.arrived, bar.threads);
}

void check_named(const Thread &me, int id, int threads, const char *primitive,
                 source_location where) {
  if (id < 1 || id >= kNamedBarriers)
    violation(where, "passes barrier %d to %s, outside [1, 15]", id, primitive);
  if (threads < kWarpSize || threads % kWarpSize != 0 || threads > me.block->num_threads)
    violation(where, "passes %d threads to %s, not a multiple of 32 up to its block of %d", threads,
              primitive, me.block->num_threads);
  const uint32_t came = me.block->barriers->named[id].lanes[me.warp->index];
  if ((me.warp->alive | came) != ~0u)
    violation(where, "calls %s after lanes of its warp have returned", primitive);
}

/// Releases the warps that have arrived.
void release(Block &block, NamedBarrier &bar) {
  bool is_next_begun = false;
  for (int w = 0; w < block.num_warps(); w++) {
    if (bar.lanes[w] == ~0u) {
      bar.lanes[w] = 0;
      if (bar.waiting[w] != 0) wake(block.warps[w], std::exchange(bar.waiting[w], 0u));
    }
    is_next_begun |= bar.lanes[w] != 0;
  }
  bar.arrived = 0;
  if (!is_next_begun) bar.threads = 0;
}

/// Returns whether the arrival has completed the barrier.
bool arrive_named(Thread &me, int id, int threads, bool waits, const char *primitive,
                  source_location where) {
  check_named(me, id, threads, primitive, where);
  Block &block = *me.block;
  NamedBarrier &bar = block.barriers->named[id];
  const int w = me.warp->index;
  const uint32_t lane = 1u << me.lane;
  block.barriers->named_used |= 1u << id;
  if (bar.threads == 0) {
    bar.threads = threads;
    bar.at = where;
  } else if (bar.threads != threads) {
    violation(where,
              "arrives at barrier %d in %s with %d threads, but it is in use with %d threads at %s",
              id, primitive, threads, bar.threads, file_and_line(bar.at).text);
  }
  if (bar.lanes[w] == 0)
    bar.warp_at[w] = where;
  else if (bar.lanes[w] & lane)
    violation(where, "arrives at barrier %d again in %s before all %d threads have arrived", id,
              primitive, threads);
  else if (!same_line(bar.warp_at[w], where))
    violation(where, "arrives at barrier %d from a different line than its warp, which is at %s",
              id, file_and_line(bar.warp_at[w]).text);
  bar.lanes[w] |= lane;
  if (waits) bar.waiting[w] |= lane;
  if (bar.lanes[w] == ~0u) bar.arrived += kWarpSize;
  if (bar.arrived < threads) return false;
  bar.waiting[w] &= ~lane;
  release(block, bar);
  return true;
}

}  // namespace

std::string Barriers::unfinished() const {
  for (const Mbarrier &bar : mbarriers) {
    const MbarrierWord word = word_of(bar);
    if (word.pending != word.arrivals || word.bytes != 0)
      return std::string("leaves mbarrier ") + name_of(bar).text + " in the middle of phase " +
             std::to_string(bar.num_complete) + ", which lacks " + std::to_string(word.pending) +
             " of " + std::to_string(word.arrivals) + " arrivals";
  }
  return "";
}

void Barriers::begin_block() {
  offsets.clear();
  mbarriers.clear();
  for (; named_used != 0; named_used &= named_used - 1)
    if (const int id = std::countr_zero(named_used); id < kNamedBarriers) named[id] = {};
}

// ---------------------------------------------------------------- interface for the simulator

void mbarrier_complete_tx(SmemAddress address, uint32_t bytes, source_location where) {
  Mbarrier &bar = mbarrier_at(address, User::async_proxy, "complete_tx", where);
  MbarrierWord word = word_of(bar);
  add_bytes(bar, word, -static_cast<int64_t>(bytes), "complete_tx", where);
  settle(bar, word, where);
}

}  // namespace engine

// ---------------------------------------------------------------- primitives

using namespace engine;

void mbarrier_init(SmemAddress address, int arrivals, source_location where) {
  check_own(address, "mbarrier_init", where);
  if (arrivals < 1 || arrivals > kMaxCount)
    violation(where, "passes %d arrivals to mbarrier_init", arrivals);
  const auto [block, offset] = locate_mbarrier(address, "mbarrier_init", where);
  if (const Mbarrier *const bar = find(block, offset); bar != nullptr)
    violation(where, "initializes mbarrier %s a second time", name_of(*bar).text);
  block.barriers->offsets.push_back(offset);
  Mbarrier &bar = block.barriers->mbarriers.emplace_back();
  bar.block = &block;
  bar.offset = offset;
  bar.initialized_by = current;
  store(bar, {0, static_cast<uint64_t>(arrivals), static_cast<uint64_t>(arrivals), 0});
}

void mbarrier_init_fence() {
  for (Mbarrier &bar : current->block->barriers->mbarriers)
    if (bar.initialized_by == current) bar.is_fenced = true;
}

void mbarrier_arrive(SmemAddress address, source_location where) {
  check_own(address, "mbarrier_arrive", where);
  arrive(address, 0, "mbarrier_arrive", where);
}

void mbarrier_arrive_cluster(SmemAddress address, source_location where) {
  arrive(address, 0, "mbarrier_arrive_cluster", where);
}

void mbarrier_arrive_expect(SmemAddress address, uint32_t bytes, source_location where) {
  check_own(address, "mbarrier_arrive_expect", where);
  arrive(address, bytes, "mbarrier_arrive_expect", where);
}

/// When a woken thread runs, the next phase may have completed as well.  A GPU thread tests the
/// parity and would then wait for one more phase, perhaps forever.  Whether this happens depends on
/// timing, so the simulator always reports it.
void mbarrier_wait(SmemAddress address, uint32_t parity, source_location where) {
  check_own(address, "mbarrier_wait", where);
  if (parity > 1) violation(where, "passes parity %u to mbarrier_wait", parity);
  may_switch(where);
  Mbarrier &bar = mbarrier_at(address, User::thread, "mbarrier_wait", where);
  if (word_of(bar).phase != parity) return;
  const int64_t phase = bar.num_complete;
  Thread &me = *current;
  bar.waiting[me.warp->index] |= 1u << me.lane;
  block_until_woken(me, "mbarrier_wait", where, {&bar, describe_mbarrier});
  if (bar.num_complete != phase + 1)
    violation(
        where,
        "waits for phase %lld of mbarrier %s and may miss it: the next phase is also complete",
        static_cast<long long>(phase), name_of(bar).text);
}

void named_barrier_sync(int id, int threads, source_location where) {
  Thread &me = *current;
  if (!arrive_named(me, id, threads, true, "named_barrier_sync", where))
    block_until_woken(me, "named_barrier_sync", where,
                      {&me.block->barriers->named[id], describe_named});
}

void named_barrier_arrive(int id, int threads, source_location where) {
  arrive_named(*current, id, threads, false, "named_barrier_arrive", where);
  may_switch(where);
}

}  // namespace mp::host
