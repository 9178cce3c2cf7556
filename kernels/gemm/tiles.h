// Shapes of the GEMM tiles: compile-time constants of the kernels, data for kernel selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp {

/// Kernel families, in the order of the table.
enum class GemmFamily { gemv, thin, wgmma, wmma, simt };

/// Passes of a convolution, a bit each.
enum ConvPasses : unsigned {
  kNoConv = 0,
  kFprop = 1,         ///< fprop and dgrad; on wgmma, dgrad without strides
  kStridedDgrad = 2,  ///< dgrad with strides on wgmma
  kWgrad = 4
};

// clang-format off
/// All tiles, each with its kernel: TILE(kernel name, passes, shape).
///
/// - name: rows x columns x k of a stage, number of stages; users store it in plans and tables
/// - passes: of convolutions (ConvPasses); GEMM uses every tile
/// - shape: a template below, such as WgmmaTile<rows, columns, stages, is ping-pong>
///
/// Among equally fast kernels the earlier one is selected, so larger tiles come first within a
/// family; the last one runs every problem.  Fprop and dgrad have many pixels as rows, wgrad many
/// taps and channels as columns.  Each use of a tile is the first choice for some shape of the
/// bench (tests/select/test_select_used.cpp).
#define MP_GEMM_TILES(TILE)                                                                    \
  TILE(gemv,                kNoConv,                         GemvTile)                         \
  TILE(thin_32x64x64_s8,    kNoConv,                         ThinTile<32, 8>)                  \
  TILE(thin_16x64x64_s8,    kNoConv,                         ThinTile<16, 8>)                  \
  TILE(wgmma_128x256x64_s4, kFprop | kStridedDgrad | kWgrad, WgmmaTile<128, 256, 4, false>)    \
  TILE(wgmma_256x128x64_s4, kFprop | kWgrad,                 WgmmaTile<256, 128, 4, false>)    \
  TILE(wgmma_128x192x64_s4, kNoConv,                         WgmmaTile<128, 192, 4, false>)    \
  TILE(wgmma_128x128x64_s6, kFprop | kStridedDgrad | kWgrad, WgmmaTile<128, 128, 6, true>)     \
  TILE(wgmma_64x256x64_s4,  kWgrad,                          WgmmaTile<64, 256, 4, true>)      \
  TILE(wgmma_256x64x64_s4,  kFprop | kStridedDgrad,          WgmmaTile<256, 64, 4, true>)      \
  TILE(wgmma_64x128x64_s8,  kFprop | kWgrad,                 WgmmaTile<64, 128, 8, true>)      \
  TILE(wmma_256x128x32_s3,  kFprop | kWgrad,                 WmmaTile<256, 128, 64, 64, 3, 1>) \
  TILE(wmma_128x128x32_s3,  kFprop | kWgrad,                 WmmaTile<128, 128, 64, 64, 3, 2>) \
  TILE(wmma_64x64x32_s4,    kFprop | kWgrad,                 WmmaTile<64, 64, 32, 32, 4, 4>)   \
  TILE(simt_128x128x16,     kFprop | kWgrad,                 SimtTile<128, 128, 8, 2>)         \
  TILE(simt_128x16x16,      kFprop,                          SimtTile<128, 16, 4, 4>)          \
  TILE(simt_16x128x16,      kWgrad,                          SimtTile<16, 128, 4, 4>)          \
  TILE(simt_64x64x16,       kFprop | kWgrad,                 SimtTile<64, 64, 8, 4>)
// clang-format on

#define MP_TILE_NAME(name, ...) name,
#define MP_TILE_COUNT(...) +1
enum class GemmTile { MP_GEMM_TILES(MP_TILE_NAME) };
constexpr size_t kNumGemmTiles = MP_GEMM_TILES(MP_TILE_COUNT);
#undef MP_TILE_NAME
#undef MP_TILE_COUNT

/// Set of tiles: bit t for tile t.
using GemmTiles = uint32_t;
/// Returns the set that contains only this tile.
constexpr GemmTiles gemm_tiles(GemmTile tile) {
  return GemmTiles{1} << static_cast<unsigned>(tile);
}
constexpr GemmTiles kAllGemmTiles = (GemmTiles{1} << kNumGemmTiles) - 1;

/// Padding elements of every row of a WMMA stage in smem (wmma_loop.h).
constexpr int kWmmaPad = 8;

/// WMMA tile: kM x kN of D per block, kWarpM x kWarpN per warp, kK of k per stage.  64 x 64 per
/// warp keeps the tensor cores busy: each fragment read from smem is used four times.  Three stages
/// of 128 x 128 have 60 KiB, which also fit on sm_75.
template <int kM_, int kN_, int kWarpM_, int kWarpN_, int kStages_, int kMinBlocks_>
struct WmmaTile {
  static constexpr GemmFamily kFamily = GemmFamily::wmma;
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
  static constexpr GemmFamily kFamily = GemmFamily::wgmma;
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

/// wgmma tile of a cluster whose blocks split k (cluster_product.h): one product of 64 x kN for one
/// warpgroup, whose first warp also issues the loads.  The sums are a matrix of rows in groups of
/// kColumns columns; if kTransposed, its rows are the columns of wgmma.
template <int kN_, int kColumns_, int kStages_, bool kTransposed_>
struct ClusterProductTile {
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
struct ThinTile : ClusterProductTile<kRows_, 64, kStages_, true> {
  static constexpr GemmFamily kFamily = GemmFamily::thin;
};
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

/// Tile of gemv, to count tiles and slices: the kernel divides D by the number of SMs.
struct GemvTile {
  static constexpr GemmFamily kFamily = GemmFamily::gemv;
  static constexpr int kM = kGemvMaxVectors, kN = kGemvMaxVectors, kK = 16;
};

/// CUDA-core tile: every thread computes kRows x 8 elements of D.  Skinny tiles are for few
/// channels: columns of fprop and dgrad, rows of wgrad.  With 4 rows per thread there are two
/// warps, and no thread loads more than five vectors of a k-tile.
template <int kM_, int kN_, int kRows_, int kMinBlocks_>
struct SimtTile {
  static constexpr GemmFamily kFamily = GemmFamily::simt;
  static constexpr int kM = kM_, kN = kN_, kK = 16;
  static constexpr int kRows = kRows_;
  static constexpr int kMinBlocks = kMinBlocks_;  ///< per SM; bounds the registers
  static constexpr int kThreads = kM / kRows * (kN / 8);
};

template <GemmTile tile>
struct TileOf;
#define MP_TILE_SHAPE(name, passes, ...) \
  template <>                            \
  struct TileOf<GemmTile::name> : std::type_identity<__VA_ARGS__> {};
MP_GEMM_TILES(MP_TILE_SHAPE)
#undef MP_TILE_SHAPE
/// Shape of a tile.
template <GemmTile tile>
using TileShape = typename TileOf<tile>::type;

/// Returns the tiles of a family that the pass uses; kNoConv: all tiles of the family.
constexpr GemmTiles tiles_of(GemmFamily family, ConvPasses pass = kNoConv) {
  struct Row {
    GemmFamily family;
    unsigned passes;
  };
#define MP_TILE_ROW(name, passes, ...) {__VA_ARGS__::kFamily, passes},
  constexpr Row kRows[] = {MP_GEMM_TILES(MP_TILE_ROW)};
#undef MP_TILE_ROW
  GemmTiles set = 0;
  for (size_t tile = 0; tile < kNumGemmTiles; tile++)
    if (kRows[tile].family == family && (pass == kNoConv || (kRows[tile].passes & pass) != 0))
      set |= gemm_tiles(static_cast<GemmTile>(tile));
  return set;
}

/// Tiles for which a kernel is compiled: launches look up the template instance, selection the
/// available tiles.
template <GemmFamily family, ConvPasses pass = kNoConv>
struct TileList {
  static constexpr GemmTiles kSet = tiles_of(family, pass);
};

using ThinTiles = TileList<GemmFamily::thin>;
using WgmmaTiles = TileList<GemmFamily::wgmma>;
using WmmaTiles = TileList<GemmFamily::wmma>;
using SimtTiles = TileList<GemmFamily::simt>;
using FpropDgradSimtTiles = TileList<GemmFamily::simt, kFprop>;
using WgradSimtTiles = TileList<GemmFamily::simt, kWgrad>;
using FpropDgradWgmmaTiles = TileList<GemmFamily::wgmma, kFprop>;
using StridedDgradWgmmaTiles = TileList<GemmFamily::wgmma, kStridedDgrad>;
using WgradWgmmaTiles = TileList<GemmFamily::wgmma, kWgrad>;
// Implicit convolutions are compiled for all WmmaTiles.
static_assert(tiles_of(GemmFamily::wmma, kFprop) == WmmaTiles::kSet &&
              tiles_of(GemmFamily::wmma, kWgrad) == WmmaTiles::kSet);

}  // namespace mp
