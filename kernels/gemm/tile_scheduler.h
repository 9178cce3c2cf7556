// Which tile of D a block computes, and in which order tiles are dealt out.
#pragma once

#include <cstdint>

#include "kernels/simt/fast_divisor.h"
#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// One block's share: a tile of D, of one batch item, over one slice of k.
struct WorkTile {
  int64_t tile_m, tile_n;
  int64_t batch_item;
  int slice;
};

struct TileDivisors;

/// Numbers all work items of a problem.  Blocks with neighbouring numbers run at the same time;
/// walking down `group` rows of tiles before going right lets them share columns of B and rows of
/// A in L2.  Slices of one tile are far apart: they share nothing.
///
/// Numbers are below 2^31: so many tiles of 64 x 64 are more than any memory holds.
struct TileScheduler {
  uint32_t tiles_m, tiles_n;
  uint32_t batch_count;
  uint32_t split_k;
  uint32_t group;

  MP_HD int64_t num_work_tiles() const {
    return int64_t{tiles_m} * tiles_n * batch_count * split_k;
  }

  MP_HD WorkTile operator()(int64_t number) const {
    struct Divisor {
      uint32_t divisor;
      MP_HD Quotient divide(int32_t x) const {
        const uint32_t dividend = static_cast<uint32_t>(x), quotient = dividend / divisor;
        return {static_cast<int32_t>(quotient),
                static_cast<int32_t>(dividend - quotient * divisor)};
      }
    };
    return place(number, Divisor{tiles_m * tiles_n}, Divisor{batch_count}, Divisor{group * tiles_n},
                 [](uint32_t rows) { return Divisor{rows}; });
  }
  /// The same, without a division.
  MP_HD WorkTile operator()(int64_t number, const TileDivisors &by) const;

 private:
  template <class Divisor, class OfRows>
  MP_HD WorkTile place(int64_t number, const Divisor &by_item, const Divisor &by_batch,
                       const Divisor &by_group, const OfRows &by_rows) const {
    const Quotient tile = by_item.divide(static_cast<int32_t>(number));
    const Quotient rest = by_batch.divide(tile.quotient);
    const Quotient in_item = by_group.divide(tile.remainder);
    const uint32_t first_m = static_cast<uint32_t>(in_item.quotient) * group;
    const Quotient in_group = by_rows(min_of(group, tiles_m - first_m)).divide(in_item.remainder);
    return {first_m + in_group.remainder, in_group.quotient, rest.remainder, rest.quotient};
  }
};

/// What the numbers of a scheduler are divided by, made on the host.
struct TileDivisors {
  FastDivisor item, batch, group;
  FastDivisor rows, last_rows;  ///< of a group of rows, and of the last

  TileDivisors() = default;
  explicit TileDivisors(const TileScheduler &tiles)
      : item(fast_divisor(int64_t{tiles.tiles_m} * tiles.tiles_n)),
        batch(fast_divisor(tiles.batch_count)),
        group(fast_divisor(int64_t{tiles.group} * tiles.tiles_n)),
        rows(fast_divisor(tiles.group)),
        last_rows(fast_divisor((tiles.tiles_m - 1) % tiles.group + 1)) {}
};

MP_HD WorkTile TileScheduler::operator()(int64_t number, const TileDivisors &by) const {
  return place(number, by.item, by.batch, by.group,
               [&](uint32_t rows) { return rows == group ? by.rows : by.last_rows; });
}

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
inline uint32_t raster_group(int tile_m, int tile_n, int num_blocks) {
  int best = 1;
  const auto elems = [&](int group) {
    return group * tile_m + ceil_div(num_blocks, group) * tile_n;
  };
  for (int group = 2; group <= 32; group *= 2)
    if (elems(group) < elems(best)) best = group;
  return static_cast<uint32_t>(best);
}

}  // namespace mp::MP_TARGET
