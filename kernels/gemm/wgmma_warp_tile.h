// Accumulators of a warp, and their rows and columns in D.
//
// Lane l holds columns 8 j + 2 (l % 4) + {0, 1} of two of its warp's 16 rows: row l / 4 in
// registers 4 j and 4 j + 1, row l / 4 + 8 in registers 4 j + 2 and 4 j + 3.  Source: PTX ISA,
// wgmma, matrix D.
#pragma once

#include "kernels/gemm/epilogue.h"
#include "kernels/gemm/wgmma_tile_scheduler.h"

namespace mp::MP_TARGET {

/// Columns of the product that are contiguous in D.
struct ColumnSegment {
  int64_t col;    ///< first column, in D
  int64_t count;  ///< number of columns from `col` on
};

/// Coordinates of a staging buffer's 64 columns in the tensor map of D.
struct TmaCoord {
  int x, z;
};

/// Placement of a product whose rows and columns are those of D.  Other placements may omit
/// columns, but keep 32 columns that begin at a multiple of 32 contiguous, and 64 in one staging
/// buffer.  A placement with strided rows also maps rows to D and provides the TMA coordinates of a
/// subtile (StridePhasePlacement in dgrad_wgmma.h).
struct DensePlacement {
  static constexpr bool kHasPaddedColumns = false, kHasStridedRows = false;
  static constexpr int kBoxRows = kSubtileRows;  ///< rows per TMA store

  MP_DEVICE explicit DensePlacement(const WgmmaArgs &) {}
  /// Returns the segment that begins at column `col` of the product, which has `n` columns.
  MP_DEVICE ColumnSegment run(int64_t col, int64_t n) const { return {col, n - col}; }
  MP_DEVICE TmaCoord buffer(int col, int z) const { return {col, z}; }
  /// Returns the row in D of a row of the batch item's product; negative: not in D.
  MP_DEVICE int64_t row(int, int64_t row) const { return row; }
};

/// Rows of a warp: 16 of each 64 rows of its consumer warpgroup, shared with no other warp.
template <class Tile, class Placement>
struct WgmmaWarpTile {
  static constexpr int kRows = kSubtileRows;
  static constexpr int kBlocks = Tile::kRows / 64;
  static constexpr int kRegs = Tile::kN / 2;
  using Accumulators = float[kBlocks][kRegs];

  const WgmmaArgs &args;
  const Placement placement;
  const WgmmaWorkTile &work;
  const int row0;  ///< first row, in the product; that of block i is row0 + 64 i

  MP_DEVICE WgmmaWarpTile(const WgmmaArgs &args, const Placement &placement,
                          const WgmmaWorkTile &work, int consumer)
      : args(args),
        placement(placement),
        work(work),
        row0(work.m0 + (Tile::kPingPong ? 0 : consumer * Tile::kRows) + subtile() * kRows) {}

  // The following values are recomputed on use: keeping them would cost registers in the main loop.

  MP_DEVICE int64_t m() const { return args.group_count == 0 ? args.problem.out.m : item().m; }
  MP_DEVICE int64_t n() const { return args.group_count == 0 ? args.problem.out.n : item().n; }
  /// Returns whether the full tile is in D, which may have 2^31 - 1 rows; false with strided rows.
  MP_DEVICE bool is_whole() const {
    return !Placement::kHasStridedRows && int64_t{work.m0} + Tile::kM <= m() &&
           int64_t{work.n0} + Tile::kN <= n();
  }

  /// Returns whether k has elements; false for an empty group of mp_gemm_ragged.
  MP_DEVICE bool has_product() const { return args.group_count == 0 || item().k0 < item().k; }

  /// Returns the row in D of a row of the product; negative: not in D.
  MP_DEVICE int64_t row_in_d(int64_t row) const {
    return row < m() ? placement.row(work.batch_item, row) : -1;
  }

  MP_DEVICE EpilogueTarget target() const {
    EpilogueTarget to = args.group_count == 0 ? epilogue_target(args.problem.out, work.batch_item)
                                              : target_of_item(item());
    // in_gmem() is repeated because the conditional loses the address space.
    to.c = in_gmem(to.c);
    to.d = in_gmem(static_cast<char *>(to.d) + work.slice * args.slice_bytes);
    return to;
  }

 private:
  MP_DEVICE const GroupEntry &item() const { return *in_gmem(work.item); }
  static MP_DEVICE int subtile() { return warp_index() % 4; }
  static MP_DEVICE EpilogueTarget target_of_item(const GroupEntry &item) {
    return {item.m, item.n, item.c_data, item.ld_c, item.d_data, item.ld_d, 0};
  }
};

}  // namespace mp::MP_TARGET
