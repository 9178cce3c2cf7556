// Shapes of the GEMM tiles: compile-time constants of the kernels, data for kernel selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace mp {

// clang-format off
/// All tiles, larger ones first within a family: TILE(name, shape).  The tile of gemv has no shape.
#define MP_GEMM_TILES(TILE)                            \
  TILE(wgmma_128x256, WgmmaTile<128, 256, 4, false>)   \
  TILE(wgmma_256x128, WgmmaTile<256, 128, 4, false>)   \
  TILE(wgmma_128x192, WgmmaTile<128, 192, 4, false>)   \
  TILE(wgmma_128x128, WgmmaTile<128, 128, 6, true>)    \
  TILE(wgmma_64x256, WgmmaTile<64, 256, 4, true>)      \
  TILE(wgmma_256x64, WgmmaTile<256, 64, 4, true>)      \
  TILE(wgmma_64x128, WgmmaTile<64, 128, 8, true>)      \
  TILE(wmma_256x128, WmmaTile<256, 128, 64, 64, 3, 1>) \
  TILE(wmma_128x128, WmmaTile<128, 128, 64, 64, 3, 2>) \
  TILE(wmma_64x64, WmmaTile<64, 64, 32, 32, 4, 4>)     \
  TILE(gemv, void)                                     \
  TILE(simt_128x128, SimtTile<128, 128, 8, 2>)         \
  TILE(simt_128x16, SimtTile<128, 16, 4, 4>)           \
  TILE(simt_16x128, SimtTile<16, 128, 4, 4>)           \
  TILE(simt_64x64, SimtTile<64, 64, 8, 4>)             \
  TILE(thin_32, ThinTile<32, 8>)                       \
  TILE(thin_16, ThinTile<16, 8>)
// clang-format on

#define MP_TILE_NAME(name, ...) name,
#define MP_TILE_COUNT(...) +1
enum class GemmTile { MP_GEMM_TILES(MP_TILE_NAME) };
constexpr size_t kNumGemmTiles = MP_GEMM_TILES(MP_TILE_COUNT);
#undef MP_TILE_NAME
#undef MP_TILE_COUNT

/// Set of tiles: bit t for tile t.
using GemmTiles = uint32_t;
constexpr GemmTiles gemm_tiles(std::initializer_list<GemmTile> tiles) {
  GemmTiles set = 0;
  for (const GemmTile tile : tiles) set |= GemmTiles{1} << static_cast<unsigned>(tile);
  return set;
}
constexpr GemmTiles kAllGemmTiles = (GemmTiles{1} << kNumGemmTiles) - 1;

/// Padding elements of every row of a WMMA stage in smem (wmma_loop.h).
constexpr int kWmmaPad = 8;

/// WMMA tile: kM x kN of D per block, kWarpM x kWarpN per warp, kK of k per stage.  64 x 64 per
/// warp keeps the tensor cores busy: each fragment read from smem is used four times.  Three stages
/// of 128 x 128 have 60 KiB, which also fit on sm_75.
template <int kM_, int kN_, int kWarpM_, int kWarpN_, int kStages_, int kMinBlocks_>
struct WmmaTile {
  static constexpr int kM = kM_, kN = kN_, kK = 32;
  static constexpr int kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kStages = kStages_;
  static constexpr int kMinBlocks = kMinBlocks_;  ///< per SM; bounds the registers
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;

  /// Returns the elements between rows in smem of an operand with `extent` rows (A) or columns (B).
  static constexpr int pitch(int extent, bool k_is_contiguous) {
    return (k_is_contiguous ? kK : extent) + kWmmaPad;
  }
  /// Returns the elements in smem of one stage of the operand.
  static constexpr int stage_elems(int extent, bool k_is_contiguous) {
    return (k_is_contiguous ? extent : kK) * pitch(extent, k_is_contiguous);
  }
  static constexpr size_t smem_bytes(bool a_by_k, bool b_by_k) {
    return size_t{2} * kStages * (stage_elems(kM, a_by_k) + stage_elems(kN, b_by_k));
  }
};

/// wgmma tile: kM x kN of D per work tile, kK of k per stage.  There are two consumer warpgroups.
/// Cooperative consumers compute half of the rows each.  Ping-pong consumers compute one tile each,
/// so that the epilogue of one overlaps with the main loop of the other.
template <int kM_, int kN_, int kStages_, bool kPingPong_>
struct WgmmaTile {
  static constexpr int kM = kM_, kN = kN_, kK = 64;  // one row of the swizzle
  static constexpr int kStages = kStages_;
  static constexpr bool kPingPong = kPingPong_;
  static constexpr int kConsumers = 2;
  static constexpr int kThreads = (1 + kConsumers) * 128;
  static constexpr int kRows = kPingPong ? kM : kM / kConsumers;  ///< rows of D per warpgroup
  /// The blocks of a cluster share the larger operand: B if they are neighbors along m.  Tiles of
  /// 64 columns are for n <= 64, so they never have a neighbor along n.
  static constexpr bool kClusterAlongM = kM <= kN || kN == 64;

  static constexpr int kBytesA = kM * kK * 2, kBytesB = kN * kK * 2;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  /// Staging buffers per consumer: two of 64 x 64 16-bit elements.
  static constexpr int kStagingBytes = 64 * 64 * 2, kStagingBuffers = 2;
  static constexpr size_t kSmemBytes =
      size_t{1024} + kStages * kStageBytes +
      kConsumers * kStagingBuffers * kStagingBytes;  // 1024: alignment
};

/// wgmma tile of a cluster whose blocks split k (wgmma_cluster.h): one product of 64 x kN for one
/// warpgroup, whose first warp also issues the loads.  The sums are a matrix of rows in groups of
/// kColumns columns; if kTransposed, its rows are the columns of wgmma.
template <int kN_, int kColumns_, int kStages_, bool kTransposed_>
struct WgmmaClusterTile {
  static constexpr int kM = 64, kN = kN_, kK = 64;
  static constexpr int kColumns = kColumns_, kStages = kStages_;
  static constexpr bool kTransposed = kTransposed_, kPingPong = false;
  static constexpr int kConsumers = 1, kThreads = 128, kRows = kM;
  static constexpr int kStagingBuffers = 0;  // no TMA stores
  static constexpr int kBytesA = kM * kK * 2, kBytesB = kN * kK * 2;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kSumRows = kTransposed ? kN : kM;
  static constexpr int kPitch = kTransposed ? kM + 4 : kN + 8;  ///< elements of a row of sums
  static constexpr size_t kSmemBytes = size_t{1024} + kStages * kStageBytes;  // 1024: alignment
  // Sums overwrite the stages.
  static_assert(kSumRows * kPitch * int{sizeof(float)} <= kStages * kStageBytes);
};
/// Largest cluster that every device supports; kSumRows is a multiple of it.
constexpr int kMaxClusterParts = 8;

/// Tile of D with kRows_ rows, the columns of wgmma, and 64 columns.
template <int kRows_, int kStages_>
struct ThinTile : WgmmaClusterTile<kRows_, 64, kStages_, true> {};
/// Largest m that the kernels of thin products support.  Two blocks fit on an SM.
constexpr int kThinMaxRows = 32;

/// Returns the rows of 128 bytes that one TMA load copies, for an operand with `extent` rows or
/// columns per tile.  A row is 64 elements along k if k is contiguous (`by_k`), else 64 elements
/// along m or n.
///
/// If two blocks share the operand, each loads half: half of the rows if `by_k`, else half of the
/// blocks of 64 columns.  If the number of blocks is odd, it loads half of the k of every block.
constexpr int wgmma_box_rows(bool by_k, int extent, bool is_shared) {
  constexpr int kBlock = 64;
  const bool is_halved = is_shared && (by_k || extent % (2 * kBlock) != 0);
  return (by_k ? extent : kBlock) / (is_halved ? 2 : 1);
}

/// Largest min(m, n) that the gemv kernel supports.
constexpr int kGemvMaxVectors = 16;

/// CUDA-core tile: every thread computes kRows x 8 elements of D.  Skinny tiles are for few
/// channels: columns of fprop and dgrad, rows of wgrad.  With 4 rows per thread there are two
/// warps, and no thread loads more than five vectors of a k-tile.
template <int kM_, int kN_, int kRows_, int kMinBlocks_>
struct SimtTile {
  static constexpr int kM = kM_, kN = kN_, kK = 16;
  static constexpr int kRows = kRows_;
  static constexpr int kMinBlocks = kMinBlocks_;  ///< per SM; bounds the registers
  static constexpr int kThreads = kM / kRows * (kN / 8);
};

template <GemmTile tile>
struct TileOf;
#define MP_TILE_SHAPE(name, ...) \
  template <>                    \
  struct TileOf<GemmTile::name> : std::type_identity<__VA_ARGS__> {};
MP_GEMM_TILES(MP_TILE_SHAPE)
#undef MP_TILE_SHAPE
/// Shape of a tile.
template <GemmTile tile>
using TileShape = typename TileOf<tile>::type;

/// Tiles for which a kernel is compiled: launches look up the template instance, selection the
/// available tiles.  Each is the first choice for some shape of the benchmarks
/// (tests/select/test_select_used.cpp).
template <GemmTile... tiles>
struct TileList {
  static constexpr GemmTiles kSet = gemm_tiles({tiles...});
};

using ThinTiles = TileList<GemmTile::thin_32, GemmTile::thin_16>;
using WmmaTiles = TileList<GemmTile::wmma_256x128, GemmTile::wmma_128x128, GemmTile::wmma_64x64>;
using SimtTiles = TileList<GemmTile::simt_128x128, GemmTile::simt_128x16, GemmTile::simt_16x128,
                           GemmTile::simt_64x64>;
/// Tiles of convolutions.  Fprop and dgrad have many pixels as rows, wgrad many taps and channels
/// as columns.
using ConvSimtTiles = TileList<GemmTile::simt_128x128, GemmTile::simt_128x16, GemmTile::simt_64x64>;
using WgradSimtTiles =
    TileList<GemmTile::simt_128x128, GemmTile::simt_16x128, GemmTile::simt_64x64>;
using ConvWgmmaTiles =
    TileList<GemmTile::wgmma_128x256, GemmTile::wgmma_256x128, GemmTile::wgmma_128x128,
             GemmTile::wgmma_256x64, GemmTile::wgmma_64x128>;
using StridedDgradWgmmaTiles =
    TileList<GemmTile::wgmma_128x256, GemmTile::wgmma_128x128, GemmTile::wgmma_256x64>;
using WgradWgmmaTiles =
    TileList<GemmTile::wgmma_128x256, GemmTile::wgmma_256x128, GemmTile::wgmma_128x128,
             GemmTile::wgmma_64x256, GemmTile::wgmma_64x128>;
using WgmmaTiles = TileList<GemmTile::wgmma_128x256, GemmTile::wgmma_256x128,
                            GemmTile::wgmma_128x192, GemmTile::wgmma_128x128,
                            GemmTile::wgmma_64x256, GemmTile::wgmma_256x64, GemmTile::wgmma_64x128>;

}  // namespace mp
