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

/// The last of `count` items whose first tile is not behind tile `number`, looked for from item `from` on,
/// of which that is known.  first_tile(i) never falls, and is not asked for i = `from`.
///
/// Most often it is the item asked for last time.  So the search gallops, in steps that double, and
/// halves what it has leapt over: d items further on it has looked at no more than 2 log2(d) + 3.
template <class FirstTile>
MP_HD uint32_t find_item(uint32_t from, uint32_t count, uint32_t number,
                         const FirstTile &first_tile) {
  const auto begins = [&](uint32_t item) { return item < count && first_tile(item) <= number; };
  uint32_t step = 1;
  for (; begins(from + step); step *= 2) from += step;
  while (step /= 2)
    if (begins(from + step)) from += step;
  return from;
}

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
