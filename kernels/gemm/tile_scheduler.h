// Order of the tiles of D, and the mapping from tile numbers to tiles, batch items and slices.
#pragma once

#include <cstdint>

#include "kernels/simt/fast_math.h"
#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// Tile of D of one batch item, over one slice of k.
struct WorkTile {
  int64_t tile_m, tile_n;
  int64_t batch_item;
  int slice;
};

struct TileDivisors;

/// Numbers all work tiles of a problem.  Blocks with neighboring numbers run at the same time.
/// Numbers increase down a column of `group` tiles, then in the next column, so that blocks share
/// columns of B and rows of A in L2.  Slices of one tile have distant numbers, because they share
/// no data.
///
/// Numbers are below 2^31: no memory holds that many tiles of 64 x 64.
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
    return tile_at(number, Divisor{tiles_m * tiles_n}, Divisor{batch_count},
                   Divisor{group * tiles_n}, [](uint32_t rows) { return Divisor{rows}; });
  }
  /// Returns the same tile without a division.
  MP_HD WorkTile operator()(int64_t number, const TileDivisors &by) const;

 private:
  template <class Divisor, class OfRows>
  MP_HD WorkTile tile_at(int64_t number, const Divisor &by_item, const Divisor &by_batch,
                         const Divisor &by_group, const OfRows &by_rows) const {
    const Quotient tile = by_item.divide(static_cast<int32_t>(number));
    const Quotient rest = by_batch.divide(tile.quotient);
    const Quotient in_item = by_group.divide(tile.remainder);
    const uint32_t first_m = static_cast<uint32_t>(in_item.quotient) * group;
    const Quotient in_group = by_rows(min_of(group, tiles_m - first_m)).divide(in_item.remainder);
    return {first_m + in_group.remainder, in_group.quotient, rest.remainder, rest.quotient};
  }
};

/// Divisors of a scheduler, computed on the host.
struct TileDivisors {
  FastDivisor item, batch, group;
  FastDivisor rows, last_rows;  ///< rows of a rasterization group, and of the last one

  TileDivisors() = default;
  explicit TileDivisors(const TileScheduler &tiles)
      : item(fast_divisor(int64_t{tiles.tiles_m} * tiles.tiles_n)),
        batch(fast_divisor(tiles.batch_count)),
        group(fast_divisor(int64_t{tiles.group} * tiles.tiles_n)),
        rows(fast_divisor(tiles.group)),
        last_rows(fast_divisor((tiles.tiles_m - 1) % tiles.group + 1)) {}
};

MP_HD WorkTile TileScheduler::operator()(int64_t number, const TileDivisors &by) const {
  return tile_at(number, by.item, by.batch, by.group,
                 [&](uint32_t rows) { return rows == group ? by.rows : by.last_rows; });
}

/// Returns the last of `count` items whose first tile is not after tile `number`.  The search
/// starts at item `from`, which must have that property.  first_tile(i) must not decrease, and is
/// not called for i = `from`.
///
/// The result is usually `from` itself.  The search therefore doubles its step until it passes the
/// result and then halves it: for a result d items after `from`, it calls first_tile at most
/// 2 log2(d) + 3 times.
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

/// Returns the rasterization group for which `num_blocks` concurrent tiles read the fewest distinct
/// rows of A and columns of B.
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
