// The main loop of the kernels for Hopper's tensor cores: TMA, mbarriers, wgmma (sm_90a).
//
// A block is three warpgroups.  One thread of the first, the producer, keeps a ring of stages filled
// through TMA; the other two, the consumers, multiply from shared memory with wgmma and have most of
// the registers.  Consumers share a tile (cooperative), or have one each and alternate (ping-pong):
// while one stores its tile, the other multiplies.  Two blocks of a cluster have neighbouring tiles
// and send each other halves of the operand that both need.
//
// Stages hold 64 of k: 128 bytes, one row of the 128-byte swizzle, which TMA writes and wgmma reads.
// Operands are never transposed: wgmma reads 16-bit operands with either k or m (n) contiguous.
// What lies outside the matrices arrives as zeros.
//
// Sources: PTX ISA, wgmma.mma_async, "Matrix descriptor" and "Shared memory layout"; CUTLASS,
// sm90_mma_tma_gmma_ss_warpspecialized and its pipelines, for who waits for whom.
#pragma once

#include "kernels/gemm/wgmma_epilogue.h"
#include "kernels/gemm/wgmma_pipeline.h"
#include "kernels/gemm/wgmma_tile_scheduler.h"
#include "kernels/simt/sm90.h"

namespace mp::MP_TARGET {

/// How an operand lies in a stage: kExtent rows of A (columns of B) by 64 of k.
template <Major major, int kExtent>
struct StagedOperand {
  static constexpr Major kMajor = major;
  /// 64 x 64 elements are one block of 8 KiB in both majors: rows of 128 bytes, eight of which are
  /// one atom of the swizzle.
  static constexpr int kBlock = 64;
  static constexpr SmemAddress kBlockBytes = kBlock * 128;
  /// 16 further along k: 32 bytes in the row, or 16 rows.
  static constexpr SmemAddress kStepBytes = major == Major::k ? 32 : 16 * 128;

  /// Of the block at `block`.  k-major: the leading offset is not used with a swizzle.
  static MP_DEVICE uint64_t descriptor(SmemAddress block) {
    constexpr uint32_t kLeading = major == Major::k ? 16 : kBlockBytes;
    constexpr uint32_t kAtomBytes = 8 * 128;
    return wgmma_descriptor(block, kLeading, kAtomBytes, Swizzle::b128);
  }

  /// Starts the copy of (mn0.. , k0..) into `smem`.  What the blocks of a cluster share, each loads
  /// half of for both.
  static MP_DEVICE void load(SmemAddress smem, const TensorMap &map, SmemAddress full, int mn0,
                             int k0, int z, bool shared) {
    if (shared)
      load_half(smem, map, full, mn0, k0, z);
    else
      load_whole(smem, map, full, mn0, k0, z);
  }

 private:
  static constexpr int kRows = wgmma_box_rows(major == Major::k, kExtent, true);  ///< of a half

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

/// Whether the blocks of a cluster share A, or B.
template <class Tile>
MP_DEVICE bool shares_a() {
  return cluster_size() > 1 && !Tile::kPairInM;
}
template <class Tile>
MP_DEVICE bool shares_b() {
  return cluster_size() > 1 && Tile::kPairInM;
}

/// Stages says what is multiplied:
///
///     using Args                                        WgmmaArgs, or more
///     using A, B                                        the StagedOperand of each
///     Stages(args, work)                                at the work tile's first stage
///     load_next(SmemAddress a, SmemAddress b, full)     starts copies of kStageBytes in all
///
/// Placement says where the rows and columns of the product are in D (wgmma_warp_tile.h).
template <class T, class Stages, class Placement, class Tile>
class WgmmaLoop {
 public:
  using Args = typename Stages::Args;
  using A = typename Stages::A;
  using B = typename Stages::B;

  MP_DEVICE WgmmaLoop(const Args &args, SmemAddress stages, std::byte *slabs,
                      const Barriers<Tile> &barriers)
      : args_(args),
        stages_(stages),
        slabs_(slabs),
        barriers_(barriers),
        cluster_(cluster_size()),
        released_(barriers.of_block(min_of(lane_index(), cluster_ - 1))) {}

  /// By one thread of the producer warpgroup.
  MP_DEVICE void produce() const {
    Ring ring;
    for (WgmmaTileScheduler<Tile, Args> scheduler(args_); !scheduler.done(); scheduler.advance()) {
      const WgmmaWorkTile work = scheduler.get();
      Stages stages(args_, work);
      for (int t = 0; t < work.k_tiles; t++) {
        mbarrier_wait(barriers_.empty(ring.stage), ring.parity ^ 1);
        const SmemAddress a = stage(ring.stage), full = barriers_.full(ring.stage);
        mbarrier_arrive_expect(full, Tile::kStageBytes);
        stages.load_next(a, a + Tile::kBytesA, full);
        ring.advance();
      }
    }
  }

  /// By all threads of a consumer warpgroup.
  MP_DEVICE void consume(int consumer) const {
    Ring ring;
    WgmmaSlabs<Tile> slabs(slabs_, barriers_, consumer);
    uint32_t seen = 0;  // ping-pong: work tiles so far; they belong to the consumers in turn
    for (WgmmaTileScheduler<Tile, Args> scheduler(args_); !scheduler.done(); scheduler.advance()) {
      const WgmmaWorkTile work = scheduler.get();
      if constexpr (Tile::kPingPong) {
        if ((seen++ & 1) != static_cast<uint32_t>(consumer)) {
          ring.advance(work.k_tiles);
          continue;
        }
      }
      Epilogue epilogue(args_, Placement(args_), work, consumer, slabs);
      if (work.inside) epilogue.start();
      if constexpr (Tile::kPingPong) {
        // The first consumer begins; from then on each waits for the other's main loop.
        const uint32_t turn = (seen - 1) / 2;
        mbarrier_wait(barriers_.order(consumer), (turn ^ (consumer == 0 ? 1u : 0u)) & 1);
      }
      Accumulators acc;
      multiply(consumer, work, ring, acc);
      if (work.inside) epilogue.store(acc);
    }
    slabs.finish();
  }

 private:
  using Ring = RingPosition<Tile::kStages>;
  using Epilogue = WgmmaEpilogue<Tile, Placement>;
  using Accumulators = typename Epilogue::Accumulators;
  static constexpr int kBlocks = Tile::kRows / 64;  // of 64 rows: what one wgmma computes

  MP_DEVICE SmemAddress stage(int index) const {
    return stages_ + static_cast<SmemAddress>(index) * Tile::kStageBytes;
  }

  /// acc = this consumer's rows of the product.  One batch of wgmmas is in flight while the next is
  /// issued; a stage is released when the batch that read it has retired.
  MP_DEVICE void multiply(int consumer, const WgmmaWorkTile &work, Ring &ring,
                          Accumulators &acc) const {
    const SmemAddress first_row =
        Tile::kPingPong ? 0 : static_cast<SmemAddress>(consumer) * kBlocks * A::kBlockBytes;
    const uint64_t a = A::descriptor(stages_ + first_row);
    const uint64_t b = B::descriptor(stages_ + Tile::kBytesA);
    int previous = 0;
    MP_NO_UNROLL
    for (int t = 0; t < work.k_tiles; t++) {
      mbarrier_wait(barriers_.full(ring.stage), ring.parity);
      const uint32_t offset = static_cast<uint32_t>(ring.stage * Tile::kStageBytes);
      keep(acc);
      wgmma_fence();
      multiply_stage(wgmma_advance(a, offset), wgmma_advance(b, offset), t > 0, acc);
      wgmma_commit();
      keep(acc);
      wgmma_wait<1>();
      if (t > 0) release(previous);
      previous = ring.stage;
      ring.advance();
    }
    pass_order(consumer);
    wgmma_wait<0>();
    keep(acc);
    release(previous);
  }

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
    MP_UNROLL
    for (int i = 0; i < kBlocks; i++) wgmma_keep(acc[i]);
  }

  /// Ping-pong: the other consumer's main loop may begin.  All of its stages come behind ours, so it
  /// never waits for a phase that is more than one round away.  Every thread says so: one that still
  /// waits for our main loop must find that phase, and not the one after the next.
  MP_DEVICE void pass_order(int consumer) const {
    if constexpr (Tile::kPingPong) mbarrier_arrive(barriers_.order(consumer ^ 1));
  }

  /// By every warp: wgmma.wait_group says no more than that the groups of the executing threads are
  /// complete.  With multicast both blocks of the cluster write the stage, so both must know.
  MP_DEVICE void release(int index) const {
    if (lane_index() < cluster_) mbarrier_arrive_cluster(released_.empty(index));
  }

  const Args &args_;
  const SmemAddress stages_;
  std::byte *const slabs_;
  const Barriers<Tile> barriers_;
  const int cluster_;
  const Barriers<Tile> released_;  ///< of the block to which this thread says that a stage is empty
};

/// The whole kernel.
template <class T, class Stages, class Placement, class Tile>
MP_DEVICE void wgmma_block(const typename Stages::Args &args) {
  // 65536 registers: 384 threads start with 168 each, and can share out no more than that.
  constexpr int kStartRegs = 168, kProducerRegs = 40, kConsumerRegs = 232;
  static_assert(kProducerRegs + Tile::kConsumers * kConsumerRegs <=
                (1 + Tile::kConsumers) * kStartRegs);

  MP_DYN_SHARED(std::byte, unaligned_smem);
  MP_SHARED(uint64_t, barrier_smem, [Barriers<Tile>::kCount]);
  // The swizzle goes by address bits: its atoms begin at multiples of 1024.
  std::byte *const smem = unaligned_smem + (0u - smem_address(unaligned_smem)) % 1024;
  // What comes out of a shuffle stays in a register; addresses of smem ptxas works out again in every
  // step of the main loop.
  const Barriers<Tile> barriers(shuffle(smem_address(barrier_smem), 0));
  if (thread_index() == 0) {
    if (args.table == nullptr) {
      tma_prefetch(args.a);
      tma_prefetch(args.b);
    }
    barriers.init(cluster_size());
  }
  cluster_sync();
  wait_for_previous_kernel();
  if (args.table != nullptr && args.header().misaligned != 0) return;

  const WgmmaLoop<T, Stages, Placement, Tile> loop(
      args, shuffle(smem_address(smem), 0), smem + Tile::kStages * Tile::kStageBytes, barriers);
  const int warpgroup = shuffle(thread_index() / kWarpgroup, 0);  // the same register in all lanes
  if (warpgroup == 0) {
    registers_release<kProducerRegs>();
    if (thread_index() == 0) loop.produce();
    warp_sync();
  } else {
    registers_claim<kConsumerRegs>();
    loop.consume(warpgroup - 1);
  }
  cluster_sync();  // the other block may still write to this one's smem and barriers
}

/// About one block per SM.
template <class Tile>
LaunchShape wgmma_launch_shape(const Device &device, uint32_t num_work_tiles, int32_t cluster) {
  const int64_t clusters = min_of<int64_t>(num_work_tiles, device.num_sms / cluster);
  return {clusters * cluster, Tile::kThreads, Tile::kSmemBytes, cluster, true};
}

}  // namespace mp::MP_TARGET
