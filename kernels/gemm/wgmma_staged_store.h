// Store path for all cases that the other paths do not support: 16 x 32 fp32 elements at a time
// pass through a patch of shared memory, which makes elements of a row contiguous, and then through
// EpilogueWriter.
#pragma once

#include "kernels/gemm/wgmma_multiply.h"
#include "kernels/gemm/wgmma_warp_tile.h"

namespace mp::MP_TARGET {

template <class Tile, class Placement>
class WgmmaStagedStore {
  using WarpTile = WgmmaWarpTile<Tile, Placement>;
  using Accumulators = typename WarpTile::Accumulators;

  static constexpr int kCols = 32, kPatchRegs = kCols / 2;
  static constexpr int kPitch = kCols + 8;

 public:
  static constexpr size_t kStagedBytes = WarpTile::kRows * kPitch * sizeof(float);

  /// `patch`: shared memory for this warp only.
  MP_DEVICE WgmmaStagedStore(const WarpTile &tile, std::byte *patch)
      : tile_(tile), patch_(reinterpret_cast<float *>(patch)) {}

  /// Stores the tile.  The loops are not unrolled, so that the general epilogue is compiled once.
  MP_DEVICE void store(const Accumulators &acc, EpilogueWriter &writer) {
    const bool is_fp32 = tile_.args.problem.out.dtype == MP_FP32;
    MP_NO_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++) {
      MP_NO_UNROLL
      for (int c = 0; c < Tile::kN / kCols; c++) {
        warp_sync();
        fill(acc, i, c);
        warp_sync();
        const int row0 = tile_.row0 + i * 64, col0 = tile_.work.n0 + c * kCols;
        if (is_fp32)
          write<kQuad>(row0, col0, writer);
        else
          write<kVec>(row0, col0, writer);
      }
    }
    warp_sync();
  }

 private:
  /// Copies a part of the accumulators to the patch.  Registers cannot be indexed at run time, so
  /// every index is compared.
  MP_DEVICE void fill(const Accumulators &acc, int block, int part) {
    MP_UNROLL
    for (int i = 0; i < WarpTile::kBlocks; i++) {
      MP_UNROLL
      for (int c = 0; c < Tile::kN / kCols; c++)
        if (i == block && c == part)
          store_accumulators<kPitch, kPatchRegs>(patch_, acc[i] + c * kPatchRegs);
    }
  }

  /// Writes the patch to D in vectors of 16 bytes.
  template <int kRun>
  MP_DEVICE void write(int64_t row0, int64_t col0, EpilogueWriter &writer) {
    constexpr int kRunsPerRow = kCols / kRun;
    const int run = lane_index() % kRunsPerRow * kRun;
    const ColumnSegment to = tile_.placement.run(col0, tile_.n());
    const int valid = static_cast<int>(min_of<int64_t>(to.count - run, kRun));
    if (valid <= 0) return;
    MP_NO_UNROLL
    for (int r = lane_index() / kRunsPerRow; r < WarpTile::kRows; r += kWarpSize / kRunsPerRow) {
      const int64_t to_row = tile_.row_in_d(row0 + r);
      if (to_row < 0) continue;
      float z[kRun];
      load_smem_run(z, patch_ + r * kPitch + run);
      writer.write(to_row, to.col + run, z, valid);
    }
  }

  const WarpTile &tile_;
  float *const patch_;
};

}  // namespace mp::MP_TARGET
