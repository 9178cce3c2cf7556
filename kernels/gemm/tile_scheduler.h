// Which tile of D a block computes, and in which order tiles are dealt out.
#pragma once

#include <cstdint>

#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// One block's share: a tile of D, of one batch item, over one slice of k.
struct WorkTile {
  int64_t tile_m, tile_n;
  int64_t batch_item;
  int slice;
};

/// Numbers all work items of a problem.  Blocks with neighbouring numbers run at the same time;
/// walking down `group` rows of tiles before going right lets them share columns of B and rows of
/// A in L2.  Slices of one tile are far apart: they share nothing.
///
/// 32 bits: 2^32 tiles of 64 x 64 are more than any memory holds, and division is much cheaper.
struct TileScheduler {
  uint32_t tiles_m, tiles_n;
  uint32_t batch_count;
  uint32_t split_k;
  uint32_t group;

  MP_HD int64_t num_work_tiles() const {
    return int64_t{tiles_m} * tiles_n * batch_count * split_k;
  }

  MP_HD WorkTile operator()(int64_t number) const {
    const uint32_t per_item = tiles_m * tiles_n;
    const uint32_t tile = static_cast<uint32_t>(number) % per_item;
    const uint32_t rest = static_cast<uint32_t>(number) / per_item;
    const uint32_t first_m = tile / (group * tiles_n) * group;
    const uint32_t rows = min_of(group, tiles_m - first_m);
    const uint32_t in_group = tile - first_m * tiles_n;
    return {first_m + in_group % rows, in_group / rows, rest % batch_count,
            static_cast<int>(rest / batch_count)};
  }
};

/// The group with which `num_blocks` tiles that run at the same time read the fewest different rows
/// of A and columns of B.
inline uint32_t tile_group(int tile_m, int tile_n, int num_blocks) {
  int best = 1;
  const auto elems = [&](int group) {
    return group * tile_m + ceil_div(num_blocks, group) * tile_n;
  };
  for (int group = 2; group <= 32; group *= 2)
    if (elems(group) < elems(best)) best = group;
  return static_cast<uint32_t>(best);
}

}  // namespace mp::MP_TARGET
