// The main loop of the kernels for Hopper's tensor cores: TMA, mbarriers, wgmma (sm_90a).
//
// A block is three warpgroups.  One thread of the first, the producer (where that is not fast enough, two,
// that have every second stage), keeps a ring of stages filled through TMA; the other two, the consumers,
// multiply from shared memory with wgmma and have most of the registers.  Consumers share a tile
// (cooperative), or have one each and alternate (ping-pong): while one stores its tile, the other
// multiplies.  Two blocks of a cluster have neighbouring tiles and send each other halves of the operand
// that both need.
//
// Sources: PTX ISA, wgmma.mma_async, "Matrix descriptor" and "Shared memory layout"; CUTLASS,
// sm90_mma_tma_gmma_ss_warpspecialized and its pipelines, for who waits for whom.
#pragma once

#include "kernels/gemm/wgmma_epilogue.h"
#include "kernels/gemm/wgmma_multiply.h"
#include "kernels/gemm/wgmma_tile_scheduler.h"
#include "kernels/simt/dtype.h"
#include "kernels/simt/sm90.h"

namespace mp::MP_TARGET {

/// Whether the blocks of a cluster share A, or B.
template <class Tile>
MP_DEVICE bool shares_a() {
  return cluster_size() > 1 && !Tile::kClusterAlongM;
}
template <class Tile>
MP_DEVICE bool shares_b() {
  return cluster_size() > 1 && Tile::kClusterAlongM;
}

/// Stages says what is multiplied:
///
///     using Args                                        WgmmaArgs, or more
///     with_layouts(args, f)                             f(WgmmaLayouts<A, B>), as the StagedOperand of each is
///     Source<Layouts>(args, work)                       at the work tile's first stage
///     source.load_next(SmemAddress a, b, full)          starts copies of kStageBytes in all, and goes kProducers on
///     kProducers                                        threads that fill the ring in turn
///
/// Placement says where the rows and columns of the product are in D (wgmma_warp_tile.h).
///
/// Types and layouts are chosen at run time, once for each work tile: what depends on them is the main loop, a
/// hundred instructions, and what does not is the epilogue, ten thousand.
template <class Stages, class Placement, class Tile>
class WgmmaLoop {
 public:
  using Args = typename Stages::Args;

  MP_DEVICE WgmmaLoop(const Args &args, SmemAddress stages, std::byte *buffers,
                      const Barriers<Tile> &barriers)
      : args_(args),
        buffers_(buffers),
        barriers_(barriers),
        multiplier_(stages, barriers, cluster_size(),
                    barriers.of_block(min_of(lane_index(), cluster_size() - 1))) {}

  /// By one thread each of so many warps of the producer warpgroup.
  static constexpr int kProducers = Stages::kProducers;

  MP_DEVICE void produce(int producer) const {
    Ring ring;
    ring.advance(producer);
    int first = producer;  // of the tile's stages
    for (WgmmaTileScheduler<Tile, Args> scheduler(args_); !scheduler.done(); scheduler.advance()) {
      WgmmaWorkTile work = scheduler.get();
      work.k0 += first * Tile::kK;
      int t = first;
      Stages::with_layouts(args_, [&](auto layouts) {
        typename Stages::template Source<decltype(layouts)> source(args_, work);
        for (; t < work.k_tiles; t += kProducers)
          multiplier_.template fill<kProducers>(
              ring, [&](SmemAddress a, SmemAddress b, SmemAddress full) {
                source.load_next(a, b, full);
              });
      });
      first = t - work.k_tiles;
    }
  }

  /// By all threads of a consumer warpgroup.
  MP_DEVICE void consume(int consumer) const {
    Ring ring;
    WgmmaStagingBuffers<Tile> buffers(buffers_, barriers_, consumer);
    uint32_t seen = 0;  // ping-pong: work tiles so far; they belong to the consumers in turn
    for (WgmmaTileScheduler<Tile, Args> scheduler(args_); !scheduler.done(); scheduler.advance()) {
      if constexpr (Tile::kPingPong) {
        if ((seen++ & 1) != static_cast<uint32_t>(consumer)) {
          ring.advance(scheduler.k_tiles());
          continue;
        }
      }
      const WgmmaWorkTile work = scheduler.get();
      Accumulators acc =
          {};  // else ptxas carries them from tile to tile, and serialises the wgmmas
      Epilogue epilogue(args_, Placement(args_), work, consumer, buffers);
      if (work.inside) epilogue.start();
      if constexpr (Tile::kPingPong) {
        // The first consumer begins; from then on each waits for the other's main loop.
        const uint32_t turn = (seen - 1) / 2;
        mbarrier_wait(barriers_.order(consumer), (turn ^ (consumer == 0 ? 1u : 0u)) & 1);
      }
      const int first_row = Tile::kPingPong ? 0 : consumer * Tile::kRows;
      with_half_type(args_.problem.dtype_ab, [&](auto type) {
        Stages::with_layouts(args_, [&](auto layouts) {
          multiplier_.template multiply<typename decltype(type)::type>(
              layouts, first_row, work.k_tiles, ring, acc, [] {}, [&] { pass_order(consumer); });
        });
      });
      if (work.inside) epilogue.store(acc);
    }
    buffers.finish();
  }

 private:
  using Multiplier = WgmmaMultiplier<Tile>;
  using Ring = typename Multiplier::Ring;
  using Accumulators = typename Multiplier::Accumulators;
  using Epilogue = WgmmaEpilogue<Tile, Placement>;

  /// Ping-pong: the other consumer's main loop may begin.  All of its stages come behind ours, so it
  /// never waits for a phase that is more than one round away.  Every thread says so: one that still
  /// waits for our main loop must find that phase, and not the one after the next.
  MP_DEVICE void pass_order(int consumer) const {
    if constexpr (Tile::kPingPong) mbarrier_arrive(barriers_.order(consumer ^ 1));
  }

  const Args &args_;
  std::byte *const buffers_;
  const Barriers<Tile> barriers_;
  const Multiplier multiplier_;
};

/// The whole kernel.
template <class Stages, class Placement, class Tile>
MP_DEVICE void wgmma_block(const typename Stages::Args &args) {
  // 65536 registers: 384 threads start with 168 each, and can share out no more than that.
  constexpr int kStartRegs = 168, kProducerRegs = 40, kConsumerRegs = 232;
  static_assert(kProducerRegs + Tile::kConsumers * kConsumerRegs <=
                (1 + Tile::kConsumers) * kStartRegs);

  MP_DYN_SHARED(std::byte, unaligned_smem);
  MP_SHARED(uint64_t, barrier_smem, [Barriers<Tile>::kCount]);
  std::byte *const smem = aligned_stages(unaligned_smem);
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

  const WgmmaLoop<Stages, Placement, Tile> loop(args, shuffle(smem_address(smem), 0),
                                                smem + Tile::kStages * Tile::kStageBytes, barriers);
  const int warpgroup = shuffle(thread_index() / kWarpgroup, 0);  // the same register in all lanes
  if (warpgroup == 0) {
    registers_release<kProducerRegs>();
    constexpr int kProducers = decltype(loop)::kProducers;
    const int producer = shuffle(warp_index(), 0);
    if (producer < kProducers && lane_index() == 0) loop.produce(producer);
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
