// Fused recurrent step for Hopper: TMA, wgmma, and the cell as the epilogue, in one launch.
//
// The blocks of a cluster share one tile of 64 rows and split k (wgmma_cluster.h).  Each block then
// sums some of the rows and runs the cell on them.
//
// The number of splits depends only on hidden_size and the device: a sequence has the same bits in
// any batch.
//
// Bytes per SM and step for 64 sequences on 132 SMs, LSTM of 1024 units: forward 96 KiB, plus 24
// KiB from other blocks of the cluster (with the tiles of fused_wmma.cu 192 KiB); backward 128
// KiB plus 14 KiB (384 KiB).
#pragma once

#include "kernels/gemm/wgmma_cluster.h"
#include "kernels/rnn/fused.h"
#include "kernels/simt/device.h"

namespace mp::MP_TARGET {

/// Tile with kN columns for kUnits units.
template <int kN, int kUnits_, int kStages>
struct FusedWgmmaTile : WgmmaClusterTile<kN, kUnits_, kStages, false> {
  static constexpr int kUnits = kUnits_;
  using Tiles = FusedTiles<FusedWgmmaTile::kM, kUnits>;
};

/// Forward: 64 units, or fewer to fit two blocks per SM, one of them of the next step.
template <class Cell>
constexpr int kFusedWgmmaUnits = Cell::kGates == 4 ? 32 : 64;
template <class Cell>
using FusedWgmmaForwardTile =
    FusedWgmmaTile<Cell::kGates * kFusedWgmmaUnits<Cell>, kFusedWgmmaUnits<Cell>,
                   Cell::kGates == 1   ? 6
                   : Cell::kGates == 3 ? 3
                                       : 4>;
using FusedWgmmaBackwardTile = FusedWgmmaTile<64, 64, 6>;

/// Returns the tile of this block's cluster.
template <class Tile, class Args>
MP_DEVICE FusedCoord fused_place(const Args &args) {
  const uint32_t block = static_cast<uint32_t>(block_index());
  return Tile::Tiles::place(args, block / static_cast<uint32_t>(cluster_size()));
}

/// Returns a launch of one cluster per tile, with one block per part of k.
template <class Tile, class Args>
LaunchShape fused_launch_shape(const Device &device, const Args &args, int64_t k_tiles) {
  const int64_t in_row = Tile::Tiles::per_row(args.steps[0].hidden);
  int parts = kMaxClusterParts;
  while (parts > 1 && (parts > k_tiles || in_row * parts > device.num_sms)) parts /= 2;
  return {Tile::Tiles::count(args) * parts, Tile::kThreads, Tile::kSmemBytes, parts, true};
}

/// Returns a tensor map of a submatrix, with boxes of 64 x 64.
inline TensorMap fused_map(mp_dtype_t dtype, const RowMatrix &matrix, int64_t row, int64_t column,
                           int64_t rows, int64_t columns) {
  const auto *const base = static_cast<const uint16_t *>(matrix.base) + matrix.at(row, column);
  return tensor_map({.base = base,
                     .dtype = dtype,
                     .extent = {columns, rows, 1},
                     .stride = {matrix.ld, 0},
                     .box = {64, 64},
                     .swizzle_128 = true});
}

}  // namespace mp::MP_TARGET
