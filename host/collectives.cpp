// block_sync and warp collectives.
#include <utility>

#include "host/barriers.h"

namespace mp::host::engine {

void block_barrier(Thread &me, source_location where) {
  Block &block = *me.block;
  if (block.at_barrier + 1 == block.alive) {
    release_block_barrier(block);
    return;
  }
  block.at_barrier++;
  block.barrier_waiting[me.warp->index] |= 1u << me.lane;
  block_until_woken(me, "block_sync", where);
}

void release_block_barrier(Block &block) {
  block.at_barrier = 0;
  for (int w = 0; w < block.num_warps(); w++) {
    uint32_t &waiting = block.barrier_waiting[w];
    if (waiting != 0) wake(block.warps[w], std::exchange(waiting, 0u));
  }
}

void warp_collective(Thread &me, const char *collective, void (*combine)(Warp &),
                     source_location where) {
  Warp &warp = *me.warp;
  warp.arrived |= 1u << me.lane;
  if (warp.arrived != ~0u) {
    block_until_woken(me, collective, where);
    return;
  }
  warp.arrived = 0;
  if (combine != nullptr) combine(warp);
  wake(warp, ~(1u << me.lane));
}

}  // namespace mp::host::engine
