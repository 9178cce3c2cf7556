// What one warp has of a tile's accumulators, and where in D it belongs.
//
// A wgmma accumulator: lane l holds, of its warp's 16 rows, the columns 8 j + 2 (l % 4) + {0, 1} of
// the rows l / 4 (registers 4 j, 4 j + 1) and l / 4 + 8 (4 j + 2, 4 j + 3).  PTX ISA, wgmma, matrix D.
#pragma once

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/wgmma_tile_scheduler.h"

namespace mp::MP_TARGET {

/// Columns of the product that are neighbours in D too.
struct ColumnSegment {
  int64_t col;    ///< of the first one, in D
  int64_t count;  ///< from there on
};

/// Where the 64 columns of a buffer go, by the map of D.
struct TmaCoord {
  int x, z;
};

/// Rows and columns of the product are those of D.  A class in its place may leave columns out, but
/// keeps 32 that begin at a multiple of 32 in one run, and 64 in one buffer.  One that scatters rows says
/// where each is, and how a subtile of 16 leaves (StridePhasePlacement in dgrad_wgmma.h).
struct DensePlacement {
  static constexpr bool kHasPaddedColumns = false, kHasStridedRows = false;
  static constexpr int kBoxRows = kSubtileRows;  ///< that TMA stores together

  MP_DEVICE explicit DensePlacement(const WgmmaArgs &) {}
  /// `n`: columns of the product.
  MP_DEVICE ColumnSegment run(int64_t col, int64_t n) const { return {col, n - col}; }
  MP_DEVICE TmaCoord buffer(int col, int z) const { return {col, z}; }
  /// In D, of a row of that batch item's product; negative: nowhere.
  MP_DEVICE int64_t row(int, int64_t row) const { return row; }
};

/// 16 rows of each 64 that its consumer warpgroup has; no other warp has any of them.
template <class Tile, class Placement>
struct WgmmaWarpTile {
  static constexpr int kRows = kSubtileRows;
  static constexpr int kBlocks = Tile::kRows / 64;
  static constexpr int kRegs = Tile::kN / 2;
  using Accumulators = float[kBlocks][kRegs];

  const WgmmaArgs &args;
  const Placement placement;
  const WgmmaWorkTile &work;
  const int row0;  ///< of the product; of the i-th block, 64 i further on

  MP_DEVICE WgmmaWarpTile(const WgmmaArgs &args, const Placement &placement,
                          const WgmmaWorkTile &work, int consumer)
      : args(args),
        placement(placement),
        work(work),
        row0(work.m0 + (Tile::kPingPong ? 0 : consumer * Tile::kRows) + subtile() * kRows) {}

  // Found out again when it is asked for, and not kept in registers during the main loop.

  MP_DEVICE int64_t m() const { return args.group_count == 0 ? args.problem.out.m : item().m; }
  MP_DEVICE int64_t n() const { return args.group_count == 0 ? args.problem.out.n : item().n; }
  /// All of the tile is inside D, which may have 2^31 - 1 rows; of scattered rows nobody asks.
  MP_DEVICE bool is_whole() const {
    return !Placement::kHasStridedRows && int64_t{work.m0} + Tile::kM <= m() &&
           int64_t{work.n0} + Tile::kN <= n();
  }

  /// False for an empty group of mp_gemm_ragged.
  MP_DEVICE bool has_product() const { return args.group_count == 0 || item().k0 < item().k; }

  /// Where a row of the product is in D; negative: nowhere.
  MP_DEVICE int64_t row_in_d(int64_t row) const {
    return row < m() ? placement.row(work.batch_item, row) : -1;
  }

  MP_DEVICE EpilogueTarget target() const {
    EpilogueTarget to = args.group_count == 0 ? epilogue_target(args.problem.out, work.batch_item)
                                              : target_of_item(item());
    // Said again of what is one or the other.
    to.c = in_gmem(to.c);
    to.d = in_gmem(static_cast<char *>(to.d) + work.slice * args.slice_bytes);
    return to;
  }

 private:
  MP_DEVICE const GroupEntry &item() const { return *in_gmem(work.item); }
  static MP_DEVICE int subtile() { return warp_index() % 4; }
  static MP_DEVICE EpilogueTarget target_of_item(const GroupEntry &item) {
    return {item.m, item.n, item.c_data, item.ldc, item.d_data, item.ldd, 0};
  }
};

}  // namespace mp::MP_TARGET
