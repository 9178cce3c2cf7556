// mbarriers in the simulator.  Waiting threads sleep instead of polling.
#include "host/barriers.h"

#include <algorithm>
#include <utility>

#include "host/shared_memory.h"
#include "kernels/simt/sm90_barrier.h"

namespace mp::host {

namespace engine {

namespace {

/// Returns the offset of an mbarrier in the arena of its block.
uint32_t offset_of(SmemAddress address, const Block &block, const char *primitive,
                   source_location where) {
  const std::byte *const memory = smem_at(address, sizeof(uint64_t), primitive, where);
  return static_cast<uint32_t>(memory - block.smem->begin());
}

Mbarrier &mbarrier_at(SmemAddress address, const char *primitive, source_location where) {
  Block &block = block_of(address, primitive, where);
  const uint32_t offset = offset_of(address, block, primitive, where);
  const std::vector<uint32_t> &offsets = block.barriers->offsets;
  const auto found = std::find(offsets.begin(), offsets.end(), offset);
  if (found == offsets.end())
    violation(where, "uses mbarrier %s in %s, which is not initialized",
              block.smem->locate(block.smem->at(offset)).text, primitive);
  return block.barriers->mbarriers[static_cast<size_t>(found - offsets.begin())];
}

/// Completes the phase if no arrivals or bytes are missing.
void settle(Mbarrier &bar) {
  if (bar.pending != 0 || bar.bytes != 0) return;
  bar.pending = bar.arrivals;
  bar.num_complete++;
  const Block &block = *bar.block;
  for (int w = 0; w < block.num_warps(); w++)
    if (bar.waiting[w] != 0) wake(block.warps[w], std::exchange(bar.waiting[w], 0u));
}

void arrive(SmemAddress address, uint32_t bytes, const char *primitive, source_location where) {
  Mbarrier &bar = mbarrier_at(address, primitive, where);
  bar.bytes += bytes;
  bar.pending--;
  settle(bar);
}

Text describe_mbarrier(const void *object) {
  const Mbarrier &bar = *static_cast<const Mbarrier *>(object);
  const SharedMemory &smem = *bar.block->smem;
  Text bytes{};
  if (bar.bytes > 0) bytes = words(" and %lld bytes", static_cast<long long>(bar.bytes));
  if (bar.bytes < 0)
    bytes = words(" and has %lld unexpected bytes", -static_cast<long long>(bar.bytes));
  return words("for mbarrier %s, whose phase %lld of parity %d lacks %d of %d arrivals%s",
               smem.locate(smem.at(bar.offset)).text, static_cast<long long>(bar.num_complete),
               static_cast<int>(bar.num_complete % 2), bar.pending, bar.arrivals, bytes.text);
}

}  // namespace

void mbarrier_complete_tx(SmemAddress address, uint32_t bytes, source_location where) {
  Mbarrier &bar = mbarrier_at(address, "complete_tx", where);
  bar.bytes -= bytes;
  settle(bar);
}

}  // namespace engine

using namespace engine;

void mbarrier_init(SmemAddress address, int arrivals, source_location where) {
  Block &block = block_of(address, "mbarrier_init", where);
  const uint32_t offset = offset_of(address, block, "mbarrier_init", where);
  block.barriers->offsets.push_back(offset);
  block.barriers->mbarriers.push_back({&block, offset, arrivals, arrivals, 0, 0, {}});
}

void mbarrier_arrive(SmemAddress address, source_location where) {
  arrive(address, 0, "mbarrier_arrive", where);
}

void mbarrier_arrive_cluster(SmemAddress address, source_location where) {
  arrive(address, 0, "mbarrier_arrive_cluster", where);
}

void mbarrier_arrive_expect(SmemAddress address, uint32_t bytes, source_location where) {
  arrive(address, bytes, "mbarrier_arrive_expect", where);
}

void mbarrier_wait(SmemAddress address, uint32_t parity, source_location where) {
  Mbarrier &bar = mbarrier_at(address, "mbarrier_wait", where);
  if (bar.num_complete % 2 != static_cast<int64_t>(parity)) return;
  Thread &me = *current;
  bar.waiting[me.warp->index] |= 1u << me.lane;
  block_until_woken(me, "mbarrier_wait", where, {&bar, describe_mbarrier});
}

}  // namespace mp::host
