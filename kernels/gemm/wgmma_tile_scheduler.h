// Tile scheduler of the persistent wgmma kernels.
//
// The grid has at most one block per SM.  Of C clusters, cluster c takes the work tiles c, c + C,
// c + 2 C and so on.  The producer and both consumers of a block iterate over the same work tiles.
// The two blocks of a cluster have neighboring tiles.  If the number of tiles along the cluster is
// odd, the last tile is outside D: its block multiplies zeros and stores nothing.
#pragma once

#include "kernels/gemm/wgmma_args.h"

namespace mp::MP_TARGET {

/// Tile of D over one slice of k.
struct WgmmaWorkTile {
  int32_t m0, n0;       ///< first row and column in D
  int32_t k0, k_tiles;  ///< first k, and number of k-tiles
  int32_t batch_item;
  int32_t slice;
  const GroupEntry *item;  ///< NULL if the batch items have common strides
  bool inside;             ///< the tile overlaps D
};

template <class Tile, class Args = WgmmaArgs>
class WgmmaTileScheduler {
 public:
  MP_DEVICE explicit WgmmaTileScheduler(const Args &args)
      : args_(args),
        cluster_(cluster_size()),
        rank_(cluster_rank()),
        number_(static_cast<uint32_t>(block_index()) / static_cast<uint32_t>(cluster_)),
        step_(static_cast<uint32_t>(grid_size()) / static_cast<uint32_t>(cluster_)),
        num_work_tiles_(args.tiles_in_table ? args.header().num_tiles : args.num_work_tiles) {}

  MP_DEVICE bool done() const { return number_ >= num_work_tiles_; }
  MP_DEVICE void advance() { number_ += step_; }

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
    const int32_t pair_m = Tile::kClusterAlongM ? cluster_ : 1,
                  pair_n = Tile::kClusterAlongM ? 1 : cluster_;
    const int32_t tile_m = static_cast<int32_t>(tile.tile_m) * pair_m + (pair_m - 1) * rank_;
    const int32_t tile_n = static_cast<int32_t>(tile.tile_n) * pair_n + (pair_n - 1) * rank_;
    const int32_t k0 = tile.slice * args_.slice_k;
    const int32_t k_end =
        min_of(args_.k_of(static_cast<int32_t>(tile.batch_item)), k0 + args_.slice_k);
    WgmmaWorkTile work;
    work.m0 = tile_m * Tile::kM;
    work.n0 = tile_n * Tile::kN;
    work.k0 = k0;
    // An empty sum takes one k-tile, past the end of k, where TMA loads zeros.
    work.k_tiles = max_of(ceil_div(k_end - k0, Tile::kK), 1);
    work.batch_item = static_cast<int32_t>(tile.batch_item);
    work.slice = tile.slice;
    work.item = args_.table != nullptr ? &args_.item(tile.batch_item) : nullptr;
    work.inside = work.m0 < p.out.m && work.n0 < p.out.n;
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
    // An empty k takes one k-tile past its end, which loads zeros: no special case in the pipeline.
    work.k_tiles = max_of(ceil_div(item.k - item.k0, Tile::kK), 1);
    work.batch_item = 0;
    work.slice = 0;
    work.item = &item;
    work.inside = true;
    return work;
  }

  const Args &args_;
  const int cluster_, rank_;
  uint32_t number_;
  const uint32_t step_;
  const uint32_t num_work_tiles_;
  uint32_t product_ = 0;
};

}  // namespace mp::MP_TARGET
