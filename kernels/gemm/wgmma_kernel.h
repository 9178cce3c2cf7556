// The Hopper kernel of GEMMs and convolutions: shared memory, tiles and roles of a block (sm_90a).
//
// A block has three warpgroups.  The first is the producer: one thread fills a ring of stages
// through TMA (two threads, every second stage each, if one is too slow).  The other two are
// consumers: they multiply from shared memory with wgmma and own most of the registers.  Consumers
// either share a tile (cooperative) or alternate between two tiles (ping-pong): one stores its tile
// while the other multiplies.  The two blocks of a cluster compute adjacent tiles and multicast
// halves of their common operand to each other.  With args.parts, the blocks of a cluster compute
// slices of the same tile instead and add their sums in distributed shared memory.  See
// docs/wgmma-tile.md.
//
//     wgmma_args.h       arguments, and how the host makes them
//     wgmma_mainloop.h   ring of stages: loads and wgmma
//     wgmma_epilogue.h   accumulators of a warp, direct and staged store
//     wgmma_tma_store.h  store through TMA
//
// Sources: PTX ISA, wgmma.mma_async, "Matrix descriptor" and "Shared memory layout"; CUTLASS,
// sm90_mma_tma_gmma_ss_warpspecialized and its pipelines, for the synchronization.
#pragma once

#include "kernels/gemm/wgmma_args.h"
#include "kernels/gemm/wgmma_epilogue.h"
#include "kernels/gemm/wgmma_mainloop.h"
#include "kernels/gemm/wgmma_tma_store.h"
#include "kernels/simt/half.h"

namespace mp::MP_TARGET {

/// Shared memory of a block.  Stages and staging buffers are dynamic, barriers static.
template <class Tile>
struct WgmmaSmem {
  SmemAddress stages;       ///< ring of kStages: A, then B; written by TMA, read by wgmma
  std::byte *staging;       ///< kStagingBuffers per consumer warp, between registers and TMA
  Barriers<Tile> barriers;  ///< full, empty, order, arrived (wgmma_mainloop.h)

  static constexpr size_t kStagesBytes = size_t{Tile::kStages} * Tile::kStageBytes;
  static constexpr size_t kStagingBytes =
      size_t{Barriers<Tile>::kWarps} * Tile::kStagingBuffers * WgmmaStagingBuffers<Tile>::kBytes;
  static_assert(kStageAlignment + kStagesBytes + kStagingBytes == Tile::kSmemBytes);
};

/// Returns whether the blocks of a cluster share A.
template <class Tile>
MP_DEVICE bool shares_a(const WgmmaArgs &args) {
  return args.multicast_blocks > 1 && !Tile::kClusterAlongM;
}
template <class Tile>
MP_DEVICE bool shares_b(const WgmmaArgs &args) {
  return args.multicast_blocks > 1 && Tile::kClusterAlongM;
}

// ---------------------------------------------------------------------------- tiles of a block

/// Sequence of work tiles of a block.
///
/// The grid has at most one block per SM.  Cluster c of C takes the series c, c + C, c + 2 C ...
/// A series is one work tile, or several tiles of one batch item behind a pointer: its tensor maps
/// are acquired once per series.  The producer and both consumers of a block iterate over the same
/// work tiles.
///
/// Two blocks that share an operand have neighboring tiles.  If the number of tiles along the
/// cluster is odd, the last tile is outside D: its block multiplies zeros and stores nothing.
/// Blocks that split k have one tile, and neighboring slices of it.
template <class Tile, class Args = WgmmaArgs>
class WgmmaTileScheduler {
 public:
  MP_DEVICE explicit WgmmaTileScheduler(const Args &args)
      : args_(args),
        rank_(cluster_rank()),
        number_(static_cast<uint32_t>(block_index()) / static_cast<uint32_t>(cluster_size()) *
                args.tiles_per_series),
        step_((static_cast<uint32_t>(grid_size()) / static_cast<uint32_t>(cluster_size()) - 1) *
              args.tiles_per_series),
        num_work_tiles_(args.tiles_in_table ? args.header().num_tiles : args.num_work_tiles) {}

  MP_DEVICE bool done() const { return number_ >= num_work_tiles_; }
  MP_DEVICE void advance() {
    number_++;
    if ((number_ & (args_.tiles_per_series - 1)) == 0) number_ += step_;
  }

  MP_DEVICE WgmmaWorkTile get() {
    return args_.group_count > 0 ? tile_of_group() : tile_of_batch();
  }
  /// Returns the number of k-tiles of the current work tile, for consumers that skip it.
  MP_DEVICE int32_t k_tiles() {
    return args_.common_k_tiles > 0 ? args_.common_k_tiles : get().k_tiles;
  }

 private:
  MP_DEVICE WgmmaWorkTile tile_of_batch() const {
    const GemmProblem &p = args_.problem;
    const WorkTile tile = args_.scheduler(number_, args_.divisors);
    const int32_t pair_m = Tile::kClusterAlongM ? args_.multicast_blocks : 1,
                  pair_n = Tile::kClusterAlongM ? 1 : args_.multicast_blocks;
    const int32_t tile_m = static_cast<int32_t>(tile.tile_m) * pair_m + (pair_m - 1) * rank_;
    const int32_t tile_n = static_cast<int32_t>(tile.tile_n) * pair_n + (pair_n - 1) * rank_;
    const int32_t part = args_.parts > 1 ? rank_ : 0;
    const int32_t k0 = (tile.slice * args_.parts + part) * args_.slice_k;
    const int32_t k_end =
        min_of(args_.k_of(static_cast<int32_t>(tile.batch_item)), k0 + args_.slice_k);
    WgmmaWorkTile work;
    work.m0 = tile_m * Tile::kM;
    work.n0 = tile_n * Tile::kN;
    work.k0 = k0;
    work.k_tiles = max_of(ceil_div(k_end - k0, Tile::kK), 0);
    work.batch_item = static_cast<int32_t>(tile.batch_item);
    work.slice = tile.slice;
    work.item = args_.table != nullptr ? &args_.item(tile.batch_item) : nullptr;
    work.index_in_series = number_ & (args_.tiles_per_series - 1);
    work.in_bounds = work.m0 < p.out.m && work.n0 < p.out.n;
    return work;
  }

  /// Returns the current work tile of a group.  The search starts at the previous entry, because
  /// tile numbers only increase.
  MP_DEVICE WgmmaWorkTile tile_of_group() {
    product_ = find_item(product_, static_cast<uint32_t>(args_.group_count), number_,
                         [&](uint32_t product) { return args_.item(product).first_tile; });
    const GroupEntry &item = args_.item(product_);
    const TileScheduler scheduler{static_cast<uint32_t>(ceil_div(item.m - item.m0, Tile::kM)),
                                  static_cast<uint32_t>(ceil_div(item.n, Tile::kN)), 1, 1,
                                  args_.scheduler.group};
    const WorkTile tile = scheduler(number_ - item.first_tile);
    WgmmaWorkTile work;
    work.m0 = item.m0 + static_cast<int32_t>(tile.tile_m * Tile::kM);
    work.n0 = static_cast<int32_t>(tile.tile_n * Tile::kN);
    work.k0 = item.k0;
    work.k_tiles = max_of(ceil_div(item.k - item.k0, Tile::kK), 0);
    work.batch_item = 0;
    work.slice = 0;
    work.item = &item;
    work.index_in_series = 0;
    work.in_bounds = true;
    return work;
  }

  const Args &args_;
  const int rank_;
  uint32_t number_;
  const uint32_t step_;
  const uint32_t num_work_tiles_;
  uint32_t product_ = 0;
};

// ---------------------------------------------------------------------------- epilogue

/// Stores the accumulators of a warp to D through one of three store paths:
///
///     tma     WgmmaTmaStore     16-bit D, through shared memory and TMA
///     direct  WgmmaDirectStore  fp32 D with alpha and beta, directly from registers
///     staged  WgmmaStagedStore  all other cases
///
/// With split-k, the sums of each slice are stored as an fp32 D, and split_k.cu adds the slices.
/// If the blocks of a cluster split k, WgmmaClusterStore adds and stores their slices instead.
///
/// Each warp stores its rows without synchronizing with other warps.  It starts before the main
/// loop, so that its loads overlap with the tensor cores.
template <class Tile, class Placement>
class WgmmaEpilogue {
  using WarpTile = WgmmaWarpTile<Tile, Placement>;
  using Buffers = WgmmaStagingBuffers<Tile>;
  using TmaStore = WgmmaTmaStore<Tile, Placement>;
  using DirectStore = WgmmaDirectStore<Tile, Placement>;
  using StagedStore = WgmmaStagedStore<Tile, Placement>;
  using ClusterStore = WgmmaClusterStore<Tile, Placement>;

 public:
  using Accumulators = typename WarpTile::Accumulators;

  MP_DEVICE WgmmaEpilogue(const WgmmaArgs &args, const Placement &placement,
                          const WgmmaWorkTile &work, int consumer, Buffers &buffers)
      : args_(args), tile_(args, placement, work, consumer), buffers_(buffers) {}

  /// Acquires the tensor map of D, if an item has one, in this consumer's first tile of a series.
  /// Ping-pong consumers alternate.
  MP_DEVICE void acquire() const {
    constexpr uint32_t kFirst = Tile::kPingPong ? 2 : 1;
    const WgmmaWorkTile &work = tile_.work;
    if (work.item != nullptr && work.index_in_series < kFirst && args_.store == StorePath::tma &&
        is_elected_lane())
      tensor_map_acquire(&work.item->d);
  }

  /// Starts loads of the epilogue, before the main loop.  A branch between the wgmmas and their
  /// wait is not allowed: ptxas would serialize the wgmmas.
  MP_DEVICE void start() {
    const Output &out = args_.problem.out;
    // A single test for the most frequent case: the tests below are far apart in the code.
    if (out.beta == 0.0f && out.epilogue.bias == nullptr && out.epilogue.aux == nullptr) return;
    if (path() == StorePath::tma) tma_store().start();
    if (path() == StorePath::direct) direct_store().start();
  }

  MP_DEVICE void store(Accumulators &acc) {
    const StorePath store_path = path();
    // The TMA store computes the target only for subtiles that TMA cannot store.
    EpilogueWriter writer(args_.problem.out,
                          store_path == StorePath::tma ? EpilogueTarget{} : tile_.target(),
                          tile_.has_product());
    if (store_path != StorePath::staged && writer.alpha() != 1.0f) scale(acc, writer.alpha());
    switch (store_path) {
      case StorePath::tma:
        tma_store().store(acc, writer);
        break;
      case StorePath::direct:
        direct_store().store(acc, writer);
        break;
      case StorePath::staged:
        buffers_.reuse_all();
        StagedStore(tile_, buffers_.smem()).store(acc, writer);
        break;
    }
    writer.finish();
  }

  /// Adds the slices of the blocks of the cluster, and stores this block's share of their sum.
  MP_DEVICE void store_sum(const Accumulators &acc, std::byte *stages) const {
    const ClusterStore cluster(tile_, stages);
    cluster.share(acc);
    EpilogueWriter writer(args_.problem.out, tile_.target());
    cluster.store(writer);
    writer.finish();
  }

 private:
  /// Scales the accumulators, in one place for all subtiles, so that tiles with alpha = 1 branch
  /// only once.  The staged store scales in EpilogueWriter.
  static MP_DEVICE void scale(Accumulators &acc, float alpha) {
    MP_UNROLL
    for (auto &block : acc) {
      MP_UNROLL
      for (float &x : block) x = alpha == 0.0f ? 0.0f : x * alpha;
    }
  }

  static_assert(StagedStore::kStagedBytes <= Buffers::kStagingBuffers * Buffers::kBytes);

  MP_DEVICE TmaStore tma_store() { return {tile_, buffers_, bias_}; }
  MP_DEVICE DirectStore direct_store() const { return DirectStore(tile_); }

  MP_DEVICE StorePath path() {
    if (args_.store == StorePath::direct &&
        (Placement::kHasStridedRows || !direct_store().can_store()))
      return StorePath::staged;
    return args_.store;
  }

  const WgmmaArgs &args_;
  const WarpTile tile_;
  Buffers &buffers_;
  SubtileBias::Words bias_;
};

// ---------------------------------------------------------------------------- roles

/// Stages defines the operands and their loads:
///
///     using Args                                WgmmaArgs or a derived type
///     with_layouts(args, f)                     calls f(WgmmaLayouts<A, B>{})
///     Source<Layouts>(args, work)               starts at the first stage of the work tile
///     source.load_next(SmemAddress a, b, full)  issues copies of kStageBytes in total, then
///                                               advances by kProducers stages
///     kProducers                                threads that fill the ring alternately
///
/// Placement maps rows and columns of the product to D (DensePlacement in wgmma_epilogue.h).
///
/// Types and layouts are selected at run time, once per work tile.  The main loop, a hundred
/// instructions, is compiled for each of them, and the epilogue, ten thousand instructions, only
/// once.
template <class Stages, class Placement, class Tile>
class WgmmaLoop {
 public:
  using Args = typename Stages::Args;

  MP_DEVICE WgmmaLoop(const Args &args, const WgmmaSmem<Tile> &smem)
      : args_(args),
        smem_(smem),
        multiplier_(smem.stages, smem.barriers, args.multicast_blocks,
                    smem.barriers.of_block(args.multicast_blocks > 1
                                               ? min_of(lane_index(), args.multicast_blocks - 1)
                                               : cluster_rank())) {}

  /// Producer threads: one lane of the first kProducers warps of the producer warpgroup.
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
    // The last arrivals of the other block must reach this block before it exits.
    if (args_.multicast_blocks > 1) multiplier_.template drain<kProducers>(ring);
  }

  /// Runs in all threads of a consumer warpgroup.
  MP_DEVICE void consume(int consumer) const {
    Ring ring;
    WgmmaStagingBuffers<Tile> buffers(smem_.staging, smem_.barriers, consumer);
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
      epilogue.acquire();
      if (work.in_bounds) epilogue.start();
      if constexpr (Tile::kPingPong) {
        // Consumer 0 starts; after that, each consumer waits for the main loop of the other.
        const uint32_t turn = (seen - 1) / 2;
        mbarrier_wait(smem_.barriers.order(consumer), (turn ^ (consumer == 0 ? 1u : 0u)) & 1);
      }
      const int first_row = Tile::kPingPong ? 0 : consumer * Tile::kRows;
      with_half_type(args_.problem.dtype_ab, [&]<class T>(std::type_identity<T>) {
        Stages::with_layouts(args_, [&](auto layouts) {
          multiplier_.template multiply<T>(
              layouts, first_row, work.k_tiles, ring, acc, [] {}, [&] { pass_order(consumer); });
        });
      });
      if (args_.parts > 1) {  // the only tile
        multiplier_.template drain<1>(ring);
        return epilogue.store_sum(acc, smem_.staging - WgmmaSmem<Tile>::kStagesBytes);
      }
      if (work.in_bounds) epilogue.store(acc);
    }
    buffers.finish();
  }

  /// Returns whether a consumer has sums if the blocks of a cluster split k: with ping-pong, the
  /// only tile belongs to the first.
  static MP_DEVICE bool has_sums(int consumer) {
    return consumer < (Tile::kPingPong ? 1 : Tile::kConsumers);
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
    if constexpr (Tile::kPingPong) mbarrier_arrive(smem_.barriers.order(consumer ^ 1));
  }

  const Args &args_;
  const WgmmaSmem<Tile> smem_;
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
  std::byte *const stages = aligned_stages(unaligned_smem);
  // ptxas keeps the result of a shuffle in a register, but recomputes shared-memory addresses in
  // every iteration of the main loop.
  const Barriers<Tile> barriers(shuffle(smem_address(barrier_smem), 0));
  if (thread_index() == 0) {
    if (args.table == nullptr) {
      tma_prefetch(args.a);
      tma_prefetch(args.b);
    }
    barriers.init(args.multicast_blocks);
  }
  cluster_sync_relaxed();
  wait_for_previous_kernel();
  if (args.table != nullptr && args.header().misaligned != 0) return;

  const WgmmaSmem<Tile> smem{shuffle(smem_address(stages), 0),
                             stages + WgmmaSmem<Tile>::kStagesBytes, barriers};
  const WgmmaLoop<Stages, Placement, Tile> loop(args, smem);
  const int warpgroup = shuffle(thread_index() / kWarpgroup, 0);  // warp-uniform
  if (warpgroup == 0) {
    registers_release<kProducerRegs>();
    constexpr int kProducers = decltype(loop)::kProducers;
    const int producer = shuffle(warp_index(), 0);
    if (producer < kProducers && is_elected_lane()) loop.produce(producer);
    warp_sync();
  } else {
    registers_claim<kConsumerRegs>();
    loop.consume(warpgroup - 1);
  }
  // The barrier of WgmmaClusterStore counts all threads of the cluster.
  if (args.parts > 1 && (warpgroup == 0 || !loop.has_sums(warpgroup - 1))) cluster_sync_relaxed();
  cluster_sync_relaxed();  // other blocks may still write to this block's stages, or read its sums
}

/// Returns a grid of at most one block per SM; clusters that split k have one tile each.
template <class Tile>
LaunchShape wgmma_launch_shape(const Device &device, uint32_t num_work_tiles,
                               const GemmPlan &plan) {
  const int32_t cluster = plan.multicast * plan.parts;
  const int64_t most = plan.parts > 1 ? num_work_tiles : max_of(device.num_sms / cluster, 1);
  return {min_of<int64_t>(num_work_tiles, most) * cluster, Tile::kThreads, Tile::kSmemBytes,
          cluster, true};
}

}  // namespace mp::MP_TARGET
