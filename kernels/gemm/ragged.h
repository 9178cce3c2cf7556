// The groups of mp_gemm_ragged, whose sizes the device alone knows: where they begin and end.
//
// Ends are meant to rise and to stay within the bound.  They are read as if they did: one that lies before
// its predecessor is taken to be the same, one past the bound to be the bound, so that whatever they are
// nothing is read or written that is not the caller's.
#pragma once

#include "kernels/simt/reduce.h"

namespace mp::MP_TARGET {

struct RaggedGroup {
  int32_t index;
  int32_t begin, end;   ///< in the dimension that the groups share
  uint32_t first_tile;  ///< tiles of the groups before, in that dimension
};

/// A warp that walks over the groups, 32 at a time, a lane each.  All of it is called by all lanes.
class RaggedWarp {
 public:
  /// `tile`: elements of one, in the dimension that the groups share.
  MP_DEVICE RaggedWarp(const int32_t *ends, int64_t count, int64_t bound, int tile)
      : ends_(ends),
        count_(static_cast<int32_t>(count)),
        bound_(static_cast<int32_t>(min_of<int64_t>(bound, INT32_MAX))),
        tile_(tile) {}

  /// There are groups that next() has not come to.
  MP_DEVICE bool has_more() const { return next_ < count_; }

  /// Goes on to the next 32.
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

  /// This lane's group; past the last group there are empty ones.
  MP_DEVICE const RaggedGroup &own() const { return own_; }
  /// Of all groups so far.
  MP_DEVICE uint32_t num_tiles() const { return num_tiles_; }

  /// Goes on to the group of that index, and returns it in all lanes.
  MP_DEVICE RaggedGroup find_group(int64_t index) {
    while (next_ <= index) next();
    return from_lane(static_cast<int>(index % kWarpSize));
  }

  /// Goes on to the group that has that tile; false if there are fewer tiles.
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
  int32_t end_ = 0;         ///< of all groups so far
  uint32_t num_tiles_ = 0;  ///< of all groups so far
  RaggedGroup own_{};
  uint32_t tiles_ = 0;  ///< of this lane's group
};

}  // namespace mp::MP_TARGET
