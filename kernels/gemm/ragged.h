// Groups of mp_gemm_ragged, whose bounds are known only on the device.
//
// Ends should increase and stay within the bound.  They are clamped: an end before its predecessor
// counts as the predecessor, and an end past the bound as the bound.  Thus no values of the ends
// cause accesses outside the caller's matrices.
#pragma once

#include "kernels/simt/reduce.h"

namespace mp::MP_TARGET {

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

}  // namespace mp::MP_TARGET
