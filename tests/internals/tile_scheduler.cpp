// Tile scheduler of persistent grids: limits of coordinates, the order of tiles, and the search for
// the item of a tile.  The exact tests of mp_gemm, mp_gemm_grouped and mp_conv2d_dgrad check that
// every tile of every item and slice is computed once.
#include <bit>

#include "kernels/gemm/tiles.h"
#include "kernels/gemm/wgmma_kernel.h"
#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

struct RecordArgs {
  WgmmaArgs gemm;
  WgmmaWorkTile *tiles;  ///< [block]
};

/// Records the last tile of each block of a cluster of two.
MP_KERNEL(32, 1) record_last_tile(MP_PARAM(RecordArgs) args) {
  if (thread_index() != 0) return;
  for (WgmmaTileScheduler<mp::TileShape<mp::GemmTile::wgmma_128x256x64_s4>> scheduler(args.gemm);
       !scheduler.done(); scheduler.advance())
    args.tiles[block_index()] = scheduler.get();
}

/// Searches like a block that advances by `step` tiles, and checks the number of entries read.
void check_search(const std::vector<uint32_t> &tiles, uint32_t step) {
  std::vector<uint32_t> first_tile;
  uint32_t sum = 0;
  for (const uint32_t of_item : tiles) {
    first_tile.push_back(sum);
    sum += of_item;
  }
  const auto count = static_cast<uint32_t>(tiles.size());
  INFO(count << " items, " << sum << " tiles, step " << step);
  uint32_t item = 0;
  for (uint32_t number = 0; number < sum; number += step) {
    uint32_t expected = item;
    while (expected + 1 < count && first_tile[expected + 1] <= number) expected++;
    int reads = 0;
    const uint32_t before = item;
    item = find_item(before, count, number, [&](uint32_t i) {
      reads++;
      return first_tile.at(i);
    });
    REQUIRE(item == expected);
    REQUIRE(number - first_tile[item] < tiles[item]);
    REQUIRE(reads <= 2 * static_cast<int>(std::bit_width(item - before)) + 1);
  }
}

}  // namespace

TEST_CASE("tile scheduler: the item of a tile is found in a logarithmic number of reads") {
  std::vector<uint32_t> mixed = {0, 0, 1000, 1, 0, 1, 0, 0, 7, 0};
  for (uint32_t i = 0; i < 300; i++) mixed.push_back(i % 3);
  mixed.insert(mixed.begin() + 100, 50, 0);
  for (const uint32_t step : {1u, 2u, 3u, 7u, 64u, 132u, 5000u}) {
    check_search({1}, step);
    check_search({500}, step);
    check_search({0, 0, 5}, step);
    check_search({5, 0, 0}, step);
    check_search(std::vector<uint32_t>(777, 1), step);
    check_search(mixed, step);
  }
}

TEST_CASE("tile scheduler: tile coordinates of a matrix with 2^31 - 1 rows do not overflow") {
  // With one tile fewer, the second tile of the last cluster is out of bounds.
  for (const int32_t rows : {INT32_MAX, INT32_MAX - 128}) {
    constexpr int kTile = 128;
    WgmmaArgs args{};
    args.problem.out.m = rows;
    args.problem.out.n = args.problem.k = args.slice_k = 64;
    const uint32_t tiles = static_cast<uint32_t>(ceil_div<int64_t>(rows, kTile));
    args.scheduler = {ceil_div(tiles, 2u), 1, 1, 1, 1};
    args.num_work_tiles = args.scheduler.tiles_m;
    args.multicast_blocks = 2;
    std::vector<WgmmaWorkTile> last(2);
    run(record_last_tile, {2, 32, 0, 2}, {args, last.data()});
    CHECK(last[0].in_bounds);
    CHECK(last[0].m0 == INT32_MAX - 2 * kTile + 1);
    CHECK(last[1].in_bounds == (rows == INT32_MAX));
    CHECK(last[1].m0 == INT32_MAX - kTile + 1);
  }
}

TEST_CASE("tile scheduler: the rasterization group minimizes concurrent reads of A and B") {
  CHECK(raster_group(128, 128, 1) == 1);
  for (const int num_blocks : {2, 108, 132})
    for (const auto &[m, n] : {std::pair{128, 256}, {256, 128}, {128, 128}, {64, 128}}) {
      const auto elems = [&, m = m, n = n](int group) {
        return group * m + ceil_div(num_blocks, group) * n;
      };
      const int chosen = static_cast<int>(raster_group(m, n, num_blocks));
      for (const int other : {1, 2, 4, 8, 16, 32}) CHECK(elems(chosen) <= elems(other));
    }
}
