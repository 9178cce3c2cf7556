// Ring of stages between the producer warp and the consumer warpgroups: positions and barriers.
//
// full(s) completes when TMA has written stage s: one arrival, plus the number of bytes that the
// producer announces.  empty(s) completes when every warp that reads the stage, in every block to
// which TMA writes it, has retired its wgmmas.  Phases are counted for the lifetime of the kernel:
// ring positions continue from tile to tile and are never reset.
//
// Source: CUTLASS, PipelineTmaAsync; parity as in PTX ISA, mbarrier.try_wait.
#pragma once

#include "kernels/simt/sm90.h"

namespace mp::MP_TARGET {

constexpr int kWarpgroup = 128;

/// Position of a warp in the ring.
template <int kStages>
struct RingPosition {
  int stage = 0;
  uint32_t parity = 0;  ///< parity of the round through the ring

  /// Advances by kSteps, which divides kStages, so that every round visits the same stages.
  template <int kSteps = 1>
  MP_DEVICE void advance() {
    static_assert(kStages % kSteps == 0);
    stage = stage >= kStages - kSteps ? stage % kSteps : stage + kSteps;
    parity ^= stage < kSteps ? 1 : 0;
  }
  MP_DEVICE void advance(int steps) {
    const int target = stage + steps;
    parity ^= static_cast<uint32_t>(target / kStages) & 1;
    stage = target % kStages;
  }
};

/// Barriers of a block, in shared memory.
template <class Tile>
class Barriers {
 public:
  static constexpr int kWarps = Tile::kConsumers * kWarpgroup / kWarpSize;
  static constexpr int kCount =
      2 * Tile::kStages + Tile::kConsumers + kWarps * Tile::kStagingBuffers;

  MP_DEVICE explicit Barriers(SmemAddress base) : base_(base) {}

  /// Returns the barriers of the block with that rank in the cluster.
  MP_DEVICE Barriers of_block(int rank) const { return Barriers(in_block(base_, rank)); }

  /// Initializes the barriers, in one thread.  A cluster_sync must follow.
  MP_DEVICE void init(int cluster) const {
    constexpr int kReaders = (Tile::kPingPong ? 1 : Tile::kConsumers) * kWarpgroup / kWarpSize;
    for (int s = 0; s < Tile::kStages; s++) {
      mbarrier_init(full(s), 1);
      mbarrier_init(empty(s), kReaders * cluster);
    }
    for (int c = 0; c < Tile::kConsumers; c++) mbarrier_init(order(c), kWarpgroup);
    for (int w = 0; w < kWarps; w++)
      for (int s = 0; s < Tile::kStagingBuffers; s++) mbarrier_init(arrived(w, s), 1);
    mbarrier_init_fence();
  }

  MP_DEVICE SmemAddress full(int stage) const { return at(stage); }
  MP_DEVICE SmemAddress empty(int stage) const { return at(Tile::kStages + stage); }
  /// Ping-pong: order barrier of a consumer.  A phase completes when its main loop may start.
  MP_DEVICE SmemAddress order(int consumer) const { return at(2 * Tile::kStages + consumer); }
  /// Barrier of a TMA load of a consumer warp into one of its staging buffers.
  MP_DEVICE SmemAddress arrived(int warp, int buffer) const {
    return at(2 * Tile::kStages + Tile::kConsumers + warp * Tile::kStagingBuffers + buffer);
  }

 private:
  MP_DEVICE SmemAddress at(int index) const {
    return base_ + static_cast<SmemAddress>(index * int{sizeof(uint64_t)});
  }
  SmemAddress base_;
};

}  // namespace mp::MP_TARGET
