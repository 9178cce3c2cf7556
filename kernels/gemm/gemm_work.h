// Work tiles of the WMMA and CUDA-core kernels, and the groups of mp_gemm_ragged.
#pragma once

#include "kernels/gemm/gemm_args.h"
#include "kernels/simt/reduce.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- ragged groups

/// Group of mp_gemm_ragged, whose bounds are known only on the device.
///
/// Ends should increase and stay within the bound.  They are clamped: an end before its predecessor
/// counts as the predecessor, and an end past the bound as the bound.  Thus no values of the ends
/// cause accesses outside the caller's matrices.
struct RaggedGroup {
  int32_t index;
  int32_t begin, end;   ///< along the ragged dimension
  uint32_t first_tile;  ///< tiles of the previous groups along the ragged dimension
};

/// Iterates over the groups, 32 at a time, one per lane.  All lanes must call every function.
class RaggedWarp {
 public:
  /// `tile`: elements of a tile along the ragged dimension.
  MP_DEVICE RaggedWarp(const int32_t *ends, int64_t count, int64_t bound, int tile)
      : ends_(ends),
        count_(static_cast<int32_t>(count)),
        bound_(static_cast<int32_t>(min_of<int64_t>(bound, INT32_MAX))),
        tile_(tile) {}

  /// Returns whether there are groups that next() has not reached.
  MP_DEVICE bool has_more() const { return next_ < count_; }

  /// Advances to the next 32 groups.
  MP_DEVICE void next() {
    own_.index = next_ + lane_index();
    const int32_t given = own_.index < count_ ? min_of(ends_[own_.index], bound_) : 0;
    own_.end = max_of(warp_scan<Max>(given), end_);
    const int32_t before = shuffle(own_.end, max_of(lane_index() - 1, 0));
    own_.begin = lane_index() == 0 ? end_ : before;
    tiles_ = static_cast<uint32_t>(ceil_div<int64_t>(own_.end - own_.begin, tile_));
    const uint32_t tiles_to_here = warp_scan<Sum>(tiles_);
    own_.first_tile = num_tiles_ + tiles_to_here - tiles_;
    next_ += kWarpSize;
    end_ = shuffle(own_.end, kWarpSize - 1);
    num_tiles_ += shuffle(tiles_to_here, kWarpSize - 1);
  }

  /// Returns this lane's group.  Groups past the last one are empty.
  MP_DEVICE const RaggedGroup &own() const { return own_; }
  /// Returns the tiles of all groups so far.
  MP_DEVICE uint32_t num_tiles() const { return num_tiles_; }

  /// Advances to the group with that index, and returns it in all lanes.
  MP_DEVICE RaggedGroup find_group(int64_t index) {
    while (next_ <= index) next();
    return from_lane(static_cast<int>(index % kWarpSize));
  }

  /// Advances to the group that contains a tile; returns false if there are fewer tiles.
  MP_DEVICE bool find_tile(uint32_t tile, RaggedGroup *group) {
    while (num_tiles_ <= tile) {
      if (!has_more()) return false;
      next();
    }
    const bool has_it = own_.first_tile <= tile && tile - own_.first_tile < tiles_;
    *group = from_lane(warp_reduce<Max>(has_it ? lane_index() : 0));
    return true;
  }

 private:
  MP_DEVICE RaggedGroup from_lane(int lane) const {
    return {shuffle(own_.index, lane), shuffle(own_.begin, lane), shuffle(own_.end, lane),
            shuffle(own_.first_tile, lane)};
  }

  const int32_t *const ends_;
  const int32_t count_, bound_;
  const int tile_;
  int32_t next_ = 0;
  int32_t end_ = 0;         ///< end of all groups so far
  uint32_t num_tiles_ = 0;  ///< tiles of all groups so far
  RaggedGroup own_{};
  uint32_t tiles_ = 0;  ///< tiles of this lane's group
};

// ---------------------------------------------------------------------------- work tiles

/// Tile of D over one slice of k.  Rows end with the group of mp_gemm_ragged, or with D.
struct GemmWork {
  int64_t m0, m_end;
  int64_t n0;
  int64_t k0, k_end;
  int64_t batch_item;
  int slice;

  /// Returns whether the number is beyond the last tile.
  MP_DEVICE bool is_none() const { return m0 >= m_end; }
};

template <class Tile>
MP_DEVICE GemmWork work_of_batch(const GemmArgs &args, int64_t number) {
  const GemmProblem &p = args.problem;
  const WorkTile tile = args.scheduler(number);
  const int64_t k0 = tile.slice * args.slice_k;
  return {
      tile.tile_m * Tile::kM, p.out.m,   tile.tile_n * Tile::kN, k0, min_of(k0 + args.slice_k, p.k),
      tile.batch_item,        tile.slice};
}

/// Returns the work tile of a ragged GEMM.  The scheduler has enough tiles for any group sizes, so
/// the last ones may not exist.
template <class Tile>
MP_DEVICE GemmWork work_of_ragged(const GemmArgs &args, int64_t number) {
  const GemmProblem &p = args.problem;
  const uint32_t tiles_n = args.scheduler.tiles_n;
  if (args.ragged == MP_RAGGED_K) {
    GemmWork work = work_of_batch<Tile>(args, number);
    RaggedWarp warp(args.ends, p.out.batch_count, p.k, Tile::kK);
    const RaggedGroup group = warp.find_group(work.batch_item);
    work.k0 = group.begin;
    work.k_end = group.end;
    return work;
  }
  RaggedWarp warp(args.ends, p.out.batch_count, p.out.m, Tile::kM);
  RaggedGroup group;
  if (!warp.find_tile(static_cast<uint32_t>(number) / tiles_n, &group)) return {};
  const TileScheduler in_group{static_cast<uint32_t>(ceil_div(group.end - group.begin, Tile::kM)),
                               tiles_n, 1, 1, args.scheduler.group};
  const WorkTile tile = in_group(number - int64_t{group.first_tile} * tiles_n);
  return {group.begin + tile.tile_m * Tile::kM,
          group.end,
          tile.tile_n * Tile::kN,
          0,
          p.k,
          group.index,
          0};
}

/// Returns the work tile of that number; called by all threads of the block.
template <class Tile>
MP_DEVICE GemmWork gemm_work(const GemmArgs &args, int64_t number, bool is_ragged) {
  return is_ragged ? work_of_ragged<Tile>(args, number) : work_of_batch<Tile>(args, number);
}

}  // namespace mp::MP_TARGET
