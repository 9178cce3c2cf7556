// Which tiles a block computes, one turn after the other.
//
// The grid is persistent: about one block per SM, and cluster c takes the turns c, c + clusters,
// c + 2 clusters...  The producer and both consumers of a block walk through the same turns.  In a
// cluster the two blocks have neighbouring tiles; where the number of tiles is odd, the last one of
// them lies outside D, multiplies zeros and stores nothing.
#pragma once

#include "kernels/gemm/wgmma_args.h"

namespace mp::MP_TARGET {

/// One tile of D over one slice of k.
struct Turn {
  int32_t m0, n0;       ///< where the tile is in D
  int32_t k0, k_tiles;  ///< which part of k
  int32_t batch_item;
  int32_t slice;
  uint32_t tile;          ///< number of the tile, over all batch items
  const WgmmaItem *item;  ///< NULL where the items have common strides
  bool inside;            ///< some of the tile is
};

template <class Tile>
class Turns {
 public:
  MP_DEVICE explicit Turns(const WgmmaArgs &args)
      : args_(args),
        cluster_(cluster_size()),
        rank_(cluster_rank()),
        number_(static_cast<uint32_t>(block_index()) / static_cast<uint32_t>(cluster_)),
        step_(static_cast<uint32_t>(grid_size()) / static_cast<uint32_t>(cluster_)) {}

  MP_DEVICE bool done() const { return number_ >= args_.turns; }
  MP_DEVICE void advance() { number_ += step_; }

  MP_DEVICE Turn get() { return args_.group_count > 0 ? turn_of_group() : turn_of_batch(); }

 private:
  MP_DEVICE Turn turn_of_batch() const {
    const GemmProblem &p = args_.problem;
    const WorkItem work = args_.schedule(number_);
    const int32_t pair_m = Tile::kPairInM ? cluster_ : 1, pair_n = Tile::kPairInM ? 1 : cluster_;
    const int32_t tile_m = static_cast<int32_t>(work.tile_m) * pair_m + (pair_m - 1) * rank_;
    const int32_t tile_n = static_cast<int32_t>(work.tile_n) * pair_n + (pair_n - 1) * rank_;
    const uint32_t tiles_m = args_.schedule.tiles_m * static_cast<uint32_t>(pair_m);
    const uint32_t tiles_n = args_.schedule.tiles_n * static_cast<uint32_t>(pair_n);
    const int32_t k0 = work.slice * args_.slice_k;
    const int32_t k_end = min_of(static_cast<int32_t>(p.k), k0 + args_.slice_k);
    Turn turn;
    turn.m0 = tile_m * Tile::kM;
    turn.n0 = tile_n * Tile::kN;
    turn.k0 = k0;
    turn.k_tiles = ceil_div(k_end - k0, Tile::kK);
    turn.batch_item = static_cast<int32_t>(work.batch_item);
    turn.slice = work.slice;
    turn.tile = (static_cast<uint32_t>(work.batch_item) * tiles_n + static_cast<uint32_t>(tile_n)) *
                    tiles_m +
                static_cast<uint32_t>(tile_m);
    turn.item = args_.table != nullptr ? &args_.item(work.batch_item) : nullptr;
    turn.inside = turn.m0 < p.m && turn.n0 < p.n;
    return turn;
  }

  /// Numbers grow from turn to turn, so the product is the same or a later one.
  MP_DEVICE Turn turn_of_group() {
    while (product_ + 1 < args_.group_count && args_.item(product_ + 1).first_tile <= number_)
      product_++;
    const WgmmaItem &item = args_.item(product_);
    const TileSchedule schedule{static_cast<uint32_t>(ceil_div(item.m, Tile::kM)),
                                static_cast<uint32_t>(ceil_div(item.n, Tile::kN)), 1, 1,
                                args_.schedule.group};
    const WorkItem work = schedule(number_ - item.first_tile);
    Turn turn;
    turn.m0 = static_cast<int32_t>(work.tile_m * Tile::kM);
    turn.n0 = static_cast<int32_t>(work.tile_n * Tile::kN);
    turn.k0 = 0;
    turn.k_tiles = ceil_div(item.k, Tile::kK);
    turn.batch_item = 0;
    turn.slice = 0;
    turn.tile = static_cast<uint32_t>(number_);
    turn.item = &item;
    turn.inside = true;
    return turn;
  }

  const WgmmaArgs &args_;
  const int cluster_, rank_;
  uint32_t number_;
  const uint32_t step_;
  int32_t product_ = 0;
};

}  // namespace mp::MP_TARGET
