// The ring of stages between the producer warp and the consumer warpgroups.
//
// Stage s is full when TMA has brought its bytes (full[s]: one arrival, and the bytes it announces)
// and empty when every warp that reads it, in every block that TMA writes it for, has retired the
// wgmmas that did (empty[s]).  A barrier counts phases for the whole life of the kernel: positions
// go on from tile to tile and are never reset.
//
// Source: CUTLASS, PipelineTmaAsync; parity as in PTX ISA, mbarrier.try_wait.
#pragma once

#include "kernels/simt/sm90.h"

namespace mp::MP_TARGET {

constexpr int kWarpgroup = 128;

/// Where a warp is in the ring.
template <int kStages>
struct RingPosition {
  int stage = 0;
  uint32_t parity = 0;  ///< of the round through the ring

  /// Such that a stage is reached in every round, or in none.
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

/// The barriers of a block, in smem.
template <class Tile>
class Barriers {
 public:
  static constexpr int kWarps = Tile::kConsumers * kWarpgroup / kWarpSize;
  static constexpr int kCount =
      2 * Tile::kStages + Tile::kConsumers + kWarps * Tile::kStagingBuffers;

  MP_DEVICE explicit Barriers(SmemAddress base) : base_(base) {}

  /// The same barriers of the block of that rank in the cluster.
  MP_DEVICE Barriers of_block(int rank) const { return Barriers(in_block(base_, rank)); }

  /// By one thread; what follows must be a cluster_sync.
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
  /// Ping-pong: the order barrier of that consumer, whose phase ends when its main loop may begin.
  MP_DEVICE SmemAddress order(int consumer) const { return at(2 * Tile::kStages + consumer); }
  /// What a consumer warp has fetched into one of its buffers.
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
