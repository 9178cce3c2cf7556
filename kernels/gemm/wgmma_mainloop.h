// Ring of stages that TMA fills and wgmma reads: the core of every wgmma kernel.
//
// A stage holds 64 elements of k: 128 bytes, one row of the 128-byte swizzle, which TMA writes and
// wgmma reads.  Operands are never transposed: wgmma reads 16-bit operands with either k or m (n)
// contiguous.  Elements outside the matrices are loaded as zeros.
//
// full(s) completes when TMA has written stage s: one arrival, plus the number of bytes that the
// producer announces.  empty(s) completes when every warp that reads the stage, in every block to
// which TMA writes it, has retired its wgmmas.  Phases are counted for the lifetime of the kernel:
// ring positions continue from tile to tile and are never reset.
//
// Sources: CUTLASS, PipelineTmaAsync; parity as in PTX ISA, mbarrier.try_wait; see wgmma_kernel.h.
#pragma once

#include "kernels/gemm/tiles.h"
#include "kernels/simt/sm90_tma.h"
#include "kernels/simt/sm90_wgmma.h"
#include "kernels/simt/vector.h"

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

  /// Initializes the barriers, in one thread.  A cluster_sync_relaxed must follow.
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

// ---------------------------------------------------------------------------- operands

/// Layout of an operand in a stage: kExtent rows of A (columns of B) by 64 elements of k.
template <Major major, int kExtent>
struct StagedOperand {
  static constexpr Major kMajor = major;
  /// Blocks of 64 x 64 elements have 8 KiB in both majors: rows of 128 bytes, eight of which form
  /// one atom of the swizzle.
  static constexpr int kBlock = 64;
  static constexpr SmemAddress kBlockBytes = kBlock * 128;
  /// Distance of 16 elements of k: 32 bytes in the row, or 16 rows.
  static constexpr SmemAddress kStepBytes = major == Major::k ? 32 : 16 * 128;

  /// Returns the descriptor of the block at `block`.  The leading offset of a swizzled k-major
  /// block is unused.
  static MP_DEVICE uint64_t descriptor(SmemAddress block) {
    constexpr uint32_t kLeading = major == Major::k ? 16 : kBlockBytes;
    constexpr uint32_t kAtomBytes = 8 * 128;
    return wgmma_descriptor(block, kLeading, kAtomBytes);
  }

  /// Issues the copy from (mn0, k0) to `smem`.  If the blocks of a cluster share the operand, each
  /// loads half of it for both.
  static MP_DEVICE void load(SmemAddress smem, const TensorMap &map, SmemAddress full, int mn0,
                             int k0, int z, bool shared) {
    if (shared)
      load_half(smem, map, full, mn0, k0, z);
    else
      load_whole(smem, map, full, mn0, k0, z);
  }

 private:
  /// Rows of a box of half the operand.
  static constexpr int kRows = wgmma_box_rows(major == Major::k, kExtent, true);

  static MP_DEVICE void load_whole(SmemAddress smem, const TensorMap &map, SmemAddress full,
                                   int mn0, int k0, int z) {
    if constexpr (major == Major::k) {
      tma_load(smem, map, full, k0, mn0, z);
    } else {
      for (int mn = 0; mn < kExtent; mn += kBlock)
        tma_load(smem + static_cast<SmemAddress>(mn) * 128, map, full, mn0 + mn, k0, z);
    }
  }

  static MP_DEVICE void load_half(SmemAddress smem, const TensorMap &map, SmemAddress full, int mn0,
                                  int k0, int z) {
    constexpr uint32_t kBoth = 3;
    if constexpr (major == Major::k) {
      const int first = cluster_rank() * kRows;
      tma_load_multicast(smem + static_cast<SmemAddress>(first) * 128, map, full, k0, mn0 + first,
                         z, kBoth);
    } else {
      constexpr bool kInK = kRows < kBlock;
      constexpr int kCols = kInK ? kExtent : kExtent / 2;
      const int first = kInK ? 0 : cluster_rank() * kCols;
      const int row = kInK ? cluster_rank() * kRows : 0;
      for (int mn = first; mn < first + kCols; mn += kBlock)
        tma_load_multicast(smem + static_cast<SmemAddress>(mn + row) * 128, map, full, mn0 + mn,
                           k0 + row, z, kBoth);
    }
  }
};

/// Alignment of stages.  The swizzle depends on address bits, and its atoms have 1024 bytes.
constexpr size_t kStageAlignment = 1024;

/// Returns the first address at which stages may begin.
MP_DEVICE std::byte *aligned_stages(std::byte *smem) {
  return smem + (0u - smem_address(smem)) % uint32_t{kStageAlignment};
}

/// Stores a warp's accumulators of one wgmma as a matrix of 16 rows.  kPitch % 32 == 8, so that
/// four rows of pairs fall into different banks.
template <int kPitch, int kRegs>
MP_DEVICE void store_accumulators(float *matrix, const float *regs) {
  using Pair = Pack<float, 2>;
  static_assert(kPitch % 32 == 8);
  float *const to = matrix + lane_index() / 4 * kPitch + lane_index() % 4 * 2;
  MP_UNROLL
  for (int r = 0; r < kRegs; r += 2)
    *reinterpret_cast<Pair *>(to + r / 4 * 8 + r / 2 % 2 * 8 * kPitch) = {regs[r], regs[r + 1]};
}

/// Stores them transposed: a row for each column of the wgmma.  kPitch % 16 == 4, so that the
/// elements of a warp fall into different banks.
template <int kPitch, int kRegs>
MP_DEVICE void store_transposed_accumulators(float *matrix, const float *regs) {
  static_assert(kPitch % 16 == 4);
  float *const to = matrix + lane_index() % 4 * 2 * kPitch + lane_index() / 4;
  unroll<kRegs>([&](int r) { to[(r / 4 * 8 + r % 2) * kPitch + r / 2 % 2 * 8] = regs[r]; });
}

/// Layouts of both operands: A and B are StagedOperand types.
template <class A_, class B_>
struct WgmmaLayouts {
  using A = A_;
  using B = B_;
};

// ---------------------------------------------------------------------------- main loop

/// Main loop of both roles: the producer calls fill(), the consumers multiply().  All members but
/// released_ have the same value in all threads of a warp.
template <class Tile>
class WgmmaMultiplier {
  static constexpr int kBlocks = Tile::kRows / 64;  // of 64 rows, the m of one wgmma

 public:
  using Ring = RingPosition<Tile::kStages>;
  using Accumulators = float[kBlocks][Tile::kN / 2];

  /// @param multicast_blocks  blocks of the cluster that receive a stage, this block included
  /// @param released  barriers at which this lane signals that a stage is empty; lanes from
  ///     multicast_blocks on signal none
  MP_DEVICE WgmmaMultiplier(SmemAddress stages, const Barriers<Tile> &barriers,
                            int multicast_blocks, const Barriers<Tile> &released)
      : stages_(stages),
        barriers_(barriers),
        multicast_blocks_(multicast_blocks),
        released_(released) {}

  /// Fills the next stage, in one thread: waits until it is empty, then calls load(a, b, full),
  /// which issues copies of kStageBytes.  Advances the ring by kSteps.
  template <int kSteps = 1, class Load>
  MP_DEVICE void fill(Ring &ring, Load load) const {
    mbarrier_wait(barriers_.empty(ring.stage), ring.parity ^ 1);
    const SmemAddress a = stage(ring.stage), full = barriers_.full(ring.stage);
    mbarrier_arrive_expect(full, Tile::kStageBytes);
    load(a, a + Tile::kBytesA, full);
    ring.template advance<kSteps>();
  }

  /// Waits until the stages that fill<kSteps>() filled last have been released.
  template <int kSteps>
  MP_DEVICE void drain(Ring &ring) const {
    for (int i = 0; i < Tile::kStages / kSteps; i++) {
      mbarrier_wait(barriers_.empty(ring.stage), ring.parity ^ 1);
      ring.template advance<kSteps>();
    }
  }

  /// Computes acc = product of the tile's rows from first_row on, in a warpgroup.  One group of
  /// wgmmas is in flight while the next is issued.  A stage is released when its group has retired,
  /// then released() is called, except after the last group.  After the last group has been issued,
  /// issued() is called.  Without k-tiles, acc and ring are unchanged.
  template <class T, class A, class B, class Released, class Issued>
  MP_DEVICE void multiply(WgmmaLayouts<A, B>, int first_row, int k_tiles, Ring &ring,
                          Accumulators &acc, Released released, Issued issued) const {
    const uint64_t a =
        A::descriptor(stages_ + static_cast<SmemAddress>(first_row / A::kBlock) * A::kBlockBytes);
    const uint64_t b = B::descriptor(stages_ + Tile::kBytesA);
    int previous = 0;
    MP_NO_UNROLL
    for (int t = 0; t < k_tiles; t++) {
      mbarrier_wait(barriers_.full(ring.stage), ring.parity);
      const uint32_t offset = static_cast<uint32_t>(ring.stage * Tile::kStageBytes);
      keep(acc);
      wgmma_fence();
      multiply_stage<T, A, B>(wgmma_advance(a, offset), wgmma_advance(b, offset), t > 0, acc);
      wgmma_commit();
      keep(acc);
      wgmma_wait<1>();
      if (t > 0) {
        release(previous);
        released();
      }
      previous = ring.stage;
      ring.advance();
    }
    issued();
    wgmma_wait<0>();
    keep(acc);
    if (k_tiles > 0) release(previous);
  }

 private:
  MP_DEVICE SmemAddress stage(int index) const {
    return stages_ + static_cast<SmemAddress>(index) * Tile::kStageBytes;
  }

  template <class T, class A, class B>
  static MP_DEVICE void multiply_stage(uint64_t a, uint64_t b, bool accumulate, Accumulators &acc) {
    MP_UNROLL
    for (uint32_t step = 0; step < Tile::kK / 16; step++) {
      MP_UNROLL
      for (uint32_t i = 0; i < kBlocks; i++)
        wgmma<T, Tile::kN, A::kMajor, B::kMajor>(
            acc[i], wgmma_advance(a, step * A::kStepBytes + i * A::kBlockBytes),
            wgmma_advance(b, step * B::kStepBytes), accumulate || step > 0);
    }
  }

  static MP_DEVICE void keep(Accumulators &acc) {
    unroll<kBlocks>([&](int i) { fence_accumulators(acc[i]); });
  }

  /// Releases a stage, in every warp, because wgmma.wait_group covers only the groups of the
  /// executing threads.  With multicast, both blocks of the cluster write the stage, so both are
  /// signaled.
  MP_DEVICE void release(int index) const {
    if (lane_index() < multicast_blocks_) mbarrier_arrive_cluster(released_.empty(index));
  }

  const SmemAddress stages_;
  const Barriers<Tile> barriers_;
  const int multicast_blocks_;
  const Barriers<Tile> released_;
};

}  // namespace mp::MP_TARGET
