// Tile scheduler of persistent grids: every tile of every batch item and slice is computed once,
// for any number of tiles, blocks and clusters.
#include <bit>
#include <set>
#include <tuple>

#include "kernels/gemm/tiles.h"
#include "kernels/gemm/wgmma_kernel.h"
#include "testing.h"

using namespace mp::host;
using namespace mptest;

namespace {

struct RecordArgs {
  WgmmaArgs gemm;
  WgmmaWorkTile *tiles;  ///< [block][kMaxTilesOfBlock]
  int *counts;           ///< [block]
};
constexpr int kMaxTilesOfBlock = 256;
constexpr int kMaxBlocks = 8;

template <class Tile>
MP_KERNEL(32, 1)
record_tiles(MP_PARAM(RecordArgs) args) {
  if (thread_index() != 0) return;
  int count = 0;
  for (WgmmaTileScheduler<Tile> scheduler(args.gemm); !scheduler.done(); scheduler.advance()) {
    WgmmaWorkTile work = scheduler.get();
    if (scheduler.k_tiles() != work.k_tiles) work.k_tiles = -1;
    args.tiles[block_index() * kMaxTilesOfBlock + count++] = work;
  }
  args.counts[block_index()] = count;
}

/// Records the last tile of each block of a cluster of two.
MP_KERNEL(32, 1) record_last_tile(MP_PARAM(RecordArgs) args) {
  if (thread_index() != 0) return;
  for (WgmmaTileScheduler<mp::TileShape<mp::GemmTile::wgmma_128x256>> scheduler(args.gemm);
       !scheduler.done(); scheduler.advance())
    args.tiles[block_index()] = scheduler.get();
}

/// Batch items with different k: item i has k = 70 i, so item 0 is empty.
struct UnequalArgs : WgmmaArgs {
  WgmmaWorkTile *tiles;

  int32_t k_of(int32_t item) const { return 70 * item; }
};

MP_KERNEL(32, 1) record_unequal_tiles(MP_PARAM(UnequalArgs) args) {
  if (thread_index() != 0) return;
  WgmmaTileScheduler<mp::TileShape<mp::GemmTile::wgmma_128x128>, UnequalArgs> scheduler(args);
  for (int i = 0; !scheduler.done(); scheduler.advance()) args.tiles[i++] = scheduler.get();
}

template <class Tile>
std::vector<WgmmaWorkTile> tiles_of(const WgmmaArgs &args, int num_blocks, int cluster) {
  std::vector<WgmmaWorkTile> tiles(kMaxBlocks * kMaxTilesOfBlock), all;
  std::vector<int> counts(kMaxBlocks);
  run(record_tiles<Tile>, {num_blocks, 32, 0, cluster}, {args, tiles.data(), counts.data()});
  for (int block = 0; block < num_blocks; block++) {
    REQUIRE(counts[block] <= kMaxTilesOfBlock);
    for (int i = 0; i < counts[block]; i++) all.push_back(tiles[block * kMaxTilesOfBlock + i]);
    // Blocks of a cluster share loads, so they have the same number of work tiles.
    CHECK(counts[block] == counts[block / cluster * cluster]);
  }
  return all;
}

template <class Tile>
void check_batch(int tiles_m, int tiles_n, int batch, int split, int num_blocks, int cluster,
                 uint32_t group) {
  INFO("tiles " << tiles_m << " x " << tiles_n << ", batch " << batch << ", split " << split
                << ", blocks " << num_blocks << ", cluster " << cluster << ", group " << group);
  const int pair_m = Tile::kClusterAlongM ? cluster : 1,
            pair_n = Tile::kClusterAlongM ? 1 : cluster;
  WgmmaArgs args{};
  args.problem.out.m = int64_t{tiles_m} * Tile::kM - 3;
  args.problem.out.n = int64_t{tiles_n} * Tile::kN - 5;
  args.slice_k = 2 * Tile::kK;
  args.problem.k = int64_t{split} * args.slice_k - 70;  // the last slice has one k-tile
  args.scheduler = {static_cast<uint32_t>(ceil_div(tiles_m, pair_m)),
                    static_cast<uint32_t>(ceil_div(tiles_n, pair_n)), static_cast<uint32_t>(batch),
                    static_cast<uint32_t>(split), group};
  args.divisors = TileDivisors(args.scheduler);
  args.multicast_blocks = cluster;
  if (split == 1) args.common_k_tiles = 1;
  args.num_work_tiles = static_cast<uint32_t>(args.scheduler.num_work_tiles());

  std::set<std::tuple<int, int, int, int>> seen;  // row, column, item, slice
  for (const WgmmaWorkTile &work : tiles_of<Tile>(args, num_blocks, cluster)) {
    CHECK(work.m0 % Tile::kM == 0);
    CHECK(work.n0 % Tile::kN == 0);
    CHECK(work.in_bounds == (work.m0 < args.problem.out.m && work.n0 < args.problem.out.n));
    CHECK(work.k0 == work.slice * args.slice_k);
    CHECK(work.k_tiles == (work.slice + 1 < split ? 2 : 1));
    if (!work.in_bounds) continue;
    CHECK(seen.insert({work.m0, work.n0, work.batch_item, work.slice}).second);
  }
  CHECK(static_cast<int>(seen.size()) == tiles_m * tiles_n * batch * split);
}

template <class Tile>
void check_batches() {
  for (int tiles_m = 1; tiles_m <= 5; tiles_m++)
    for (int tiles_n = 1; tiles_n <= 4; tiles_n++)
      for (const int batch : {1, 3})
        for (const int split : {1, 2})
          for (const int cluster : {1, 2})
            for (const int blocks : {2, 6}) {
              check_batch<Tile>(tiles_m, tiles_n, batch, split, blocks, cluster, 1);
              check_batch<Tile>(tiles_m, tiles_n, batch, split, blocks, cluster, 2);
              check_batch<Tile>(tiles_m, tiles_n, batch, split, blocks, cluster, 8);
            }
}

using Tile = mp::TileShape<mp::GemmTile::wgmma_128x128>;

struct Product {
  int m, n, k;
  int m0 = 0, k0 = 0;  ///< first row and first k; m and k are the ends
};

void check_group(const std::vector<Product> &products, int num_blocks,
                 bool tiles_in_table = false) {
  std::vector<std::byte> memory(256 + mp::kWgmmaTableHeaderBytes +
                                products.size() * mp::kWgmmaItemBytes);
  WgmmaArgs args{};
  args.table = memory.data() + (256 - reinterpret_cast<uintptr_t>(memory.data()) % 256);
  args.group_count = static_cast<int32_t>(products.size());
  args.scheduler.group = 4;
  size_t expected = 0;
  for (size_t i = 0; i < products.size(); i++) {
    GroupEntry &item = args.item(static_cast<int64_t>(i));
    item.m = products[i].m;
    item.n = products[i].n;
    item.k = products[i].k;
    item.m0 = products[i].m0;
    item.k0 = products[i].k0;
    item.first_tile = args.num_work_tiles;
    const int tiles = ceil_div(item.m - item.m0, Tile::kM) * ceil_div(item.n, Tile::kN);
    args.num_work_tiles += static_cast<uint32_t>(tiles);
    expected += static_cast<size_t>(tiles);
  }
  args.header().num_tiles = args.num_work_tiles;
  args.tiles_in_table = tiles_in_table;
  if (tiles_in_table) args.num_work_tiles += 17;
  std::set<std::tuple<const GroupEntry *, int, int>> seen;
  for (const WgmmaWorkTile &work : tiles_of<Tile>(args, num_blocks, 1)) {
    CHECK(work.in_bounds);
    CHECK(work.m0 < work.item->m);
    CHECK(work.n0 < work.item->n);
    CHECK((work.m0 - work.item->m0) % Tile::kM == 0);
    CHECK(work.m0 >= work.item->m0);
    CHECK(work.k0 == work.item->k0);
    CHECK(work.k_tiles == ceil_div(work.item->k - work.k0, Tile::kK));
    CHECK(seen.insert({work.item, work.m0, work.n0}).second);
  }
  CHECK(seen.size() == expected);
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

TEST_CASE("tile scheduler: batch items with different k are split into slices of the longest k") {
  constexpr int kItems = 8, kSlices = 3, kSliceK = 192;  // 3 k-tiles
  std::vector<WgmmaWorkTile> tiles(kItems * kSlices);
  UnequalArgs args{};
  args.problem.out.m = args.problem.out.n = 100;
  args.problem.k = 70 * (kItems - 1);
  args.slice_k = kSliceK;
  args.scheduler = {1, 1, kItems, kSlices, 1};
  args.divisors = TileDivisors(args.scheduler);
  args.num_work_tiles = kItems * kSlices;
  args.tiles = tiles.data();
  run(record_unequal_tiles, {1, 32}, args);
  for (const WgmmaWorkTile &work : tiles) {
    CAPTURE(work.batch_item, work.slice);
    const int left = 70 * work.batch_item - work.slice * kSliceK;
    CHECK(work.k0 == work.slice * kSliceK);
    CHECK(work.k_tiles == (left <= 0 ? 0 : left >= kSliceK ? 3 : ceil_div(left, 64)));
  }
}

TEST_CASE("tile scheduler: every tile of a batch and every slice of k is computed once") {
  check_batches<mp::TileShape<mp::GemmTile::wgmma_128x256>>();
  check_batches<mp::TileShape<mp::GemmTile::wgmma_256x128>>();
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
    run(record_last_tile, {2, 32, 0, 2}, {args, last.data(), nullptr});
    CHECK(last[0].in_bounds);
    CHECK(last[0].m0 == INT32_MAX - 2 * kTile + 1);
    CHECK(last[1].in_bounds == (rows == INT32_MAX));
    CHECK(last[1].m0 == INT32_MAX - kTile + 1);
  }
}

TEST_CASE("tile scheduler: every tile of a grouped GEMM is computed once") {
  const std::vector<Product> products = {{1, 1, 1},     {500, 300, 64}, {128, 128, 65},
                                         {129, 1, 640}, {7, 400, 128},  {900, 130, 3}};
  for (const int blocks : {1, 2, 3, 5, 8}) {
    check_group(products, blocks);
    check_group({products[1]}, blocks);
    check_group({products[0], products[0], products[0], products[5]}, blocks);
    check_group(std::vector<Product>(199, {9, 9, 9}), blocks);
    check_group({{5, 40, 64}, {300, 40, 64, 5}, {300, 40, 64, 300}, {433, 40, 64, 300}}, blocks,
                true);
    check_group({{200, 150, 5}, {200, 150, 200, 0, 5}, {200, 150, 200, 0, 200}}, blocks, true);
    check_group({{900, 900, 1}, {0, 5, 1}, {5, 0, 1}, {1, 1, 1}, {0, 0, 1}, {2, 2, 2}}, blocks);
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
