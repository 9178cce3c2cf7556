// Main loop of the Hopper GEMM and convolution kernels: TMA, mbarriers, wgmma (sm_90a).
//
// A block has three warpgroups.  The first is the producer: one thread fills a ring of stages
// through TMA (two threads, every second stage each, if one is too slow).  The other two are
// consumers: they multiply from shared memory with wgmma and own most of the registers.  Consumers
// either share a tile (cooperative) or alternate between two tiles (ping-pong): one stores its tile
// while the other multiplies.  The two blocks of a cluster compute adjacent tiles and multicast
// halves of their common operand to each other.  See docs/wgmma-tile.md.
//
// Sources: PTX ISA, wgmma.mma_async, "Matrix descriptor" and "Shared memory layout"; CUTLASS,
// sm90_mma_tma_gmma_ss_warpspecialized and its pipelines, for the synchronization.
#pragma once

#include "kernels/gemm/wgmma_epilogue.h"
#include "kernels/gemm/wgmma_multiply.h"
#include "kernels/gemm/wgmma_tile_scheduler.h"
#include "kernels/simt/half.h"
#include "kernels/simt/sm90.h"

namespace mp::MP_TARGET {

/// Returns whether the blocks of a cluster share A.
template <class Tile>
MP_DEVICE bool shares_a() {
  return cluster_size() > 1 && !Tile::kClusterAlongM;
}
template <class Tile>
MP_DEVICE bool shares_b() {
  return cluster_size() > 1 && Tile::kClusterAlongM;
}

/// Stages defines the operands and their loads:
///
///     using Args                                WgmmaArgs or a derived type
///     with_layouts(args, f)                     calls f(WgmmaLayouts<A, B>{})
///     Source<Layouts>(args, work)               starts at the first stage of the work tile
///     source.load_next(SmemAddress a, b, full)  issues copies of kStageBytes in total, then
///                                               advances by kProducers stages
///     kProducers                                threads that fill the ring alternately
///
/// Placement maps rows and columns of the product to D (wgmma_warp_tile.h).
///
/// Types and layouts are selected at run time, once per work tile.  The main loop, a hundred
/// instructions, is compiled for each of them, and the epilogue, ten thousand instructions, only
/// once.
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

  /// Producer threads: lane 0 of the first kProducers warps of the producer warpgroup.
  static constexpr int kProducers = Stages::kProducers;

  MP_DEVICE void produce(int producer) const {
    Ring ring;
    ring.advance(producer);
    int first = producer;  // first stage of the tile for this producer
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

  /// Runs in all threads of a consumer warpgroup.
  MP_DEVICE void consume(int consumer) const {
    Ring ring;
    WgmmaStagingBuffers<Tile> buffers(buffers_, barriers_, consumer);
    uint32_t seen = 0;  // ping-pong: work tiles so far; consumers take them alternately
    for (WgmmaTileScheduler<Tile, Args> scheduler(args_); !scheduler.done(); scheduler.advance()) {
      if constexpr (Tile::kPingPong) {
        if ((seen++ & 1) != static_cast<uint32_t>(consumer)) {
          ring.advance(scheduler.k_tiles());
          continue;
        }
      }
      const WgmmaWorkTile work = scheduler.get();
      Accumulators acc =
          {};  // otherwise ptxas carries them from tile to tile and serializes the wgmmas
      Epilogue epilogue(args_, Placement(args_), work, consumer, buffers);
      if (work.inside) epilogue.start();
      if constexpr (Tile::kPingPong) {
        // Consumer 0 starts; after that, each consumer waits for the main loop of the other.
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

  /// Ping-pong: allows the other consumer to start its main loop.  Its stages all come after this
  /// consumer's, so it never waits for a phase more than one round away.  Every thread arrives:
  /// with a single arrival, the barrier could be two phases ahead of a thread that still waits.
  MP_DEVICE void pass_order(int consumer) const {
    if constexpr (Tile::kPingPong) mbarrier_arrive(barriers_.order(consumer ^ 1));
  }

  const Args &args_;
  std::byte *const buffers_;
  const Barriers<Tile> barriers_;
  const Multiplier multiplier_;
};

/// Body of the kernel.
template <class Stages, class Placement, class Tile>
MP_DEVICE void wgmma_block(const typename Stages::Args &args) {
  // The 384 threads start with 168 of 65536 registers each; setmaxnreg only redistributes these.
  constexpr int kStartRegs = 168, kProducerRegs = 40, kConsumerRegs = 232;
  static_assert(kProducerRegs + Tile::kConsumers * kConsumerRegs <=
                (1 + Tile::kConsumers) * kStartRegs);

  MP_DYN_SHARED(std::byte, unaligned_smem);
  MP_SHARED(uint64_t, barrier_smem, [Barriers<Tile>::kCount]);
  std::byte *const smem = aligned_stages(unaligned_smem);
  // ptxas keeps the result of a shuffle in a register, but recomputes shared-memory addresses in
  // every iteration of the main loop.
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
  const int warpgroup = shuffle(thread_index() / kWarpgroup, 0);  // warp-uniform
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
  cluster_sync();  // the other block may still write to this block's smem and barriers
}

/// Returns a grid of at most one block per SM.
template <class Tile>
LaunchShape wgmma_launch_shape(const Device &device, uint32_t num_work_tiles, int32_t cluster) {
  const int64_t clusters = min_of<int64_t>(num_work_tiles, device.num_sms / cluster);
  return {clusters * cluster, Tile::kThreads, Tile::kSmemBytes, cluster, true};
}

}  // namespace mp::MP_TARGET
