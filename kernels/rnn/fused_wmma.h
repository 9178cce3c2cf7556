// Shared code of the fused WMMA steps: tile sizes, iteration over the units of a patch, launch.
#pragma once

#include "kernels/gemm/matrix_loader.h"
#include "kernels/rnn/fused.h"
#include "kernels/rnn/fused_loaders.h"
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

/// Forward: kM rows; more gates leave room for fewer units.
template <class Cell>
constexpr int kFusedForwardUnits = Cell::kGates == 1 ? 32 : 16;
template <class Cell, int kM>
using FusedForwardTile = WmmaTile<kM, Cell::kGates * kFusedForwardUnits<Cell>, kM / 2,
                                  Cell::kGates * kFusedForwardUnits<Cell>, 6, 1>;
/// Backward: kM rows and kUnits units of dh.
template <int kM, int kUnits>
using FusedBackwardTile = WmmaTile<kM, kUnits, kM / 2, kUnits, 6, 1>;

/// Calls visit(row of the state, unit, valid units, sums) for each vector of a patch that is
/// assigned to this lane and in bounds.
/// @param patch  begins at row `row0` and the first column of the tile
template <int kUnits, int kPitch, class Visit>
MP_DEVICE void visit_units(const float *patch, const FusedPlace &place, int row0, int64_t rows,
                           int64_t hidden, Visit visit) {
  for (int i = lane_index(); i < wmma::kTile * kUnits / kVec; i += kWarpSize) {
    // Adjacent lanes have adjacent rows: no bank conflicts, and two lanes fill a sector.
    const int row = i % wmma::kTile, in_tile = i / wmma::kTile * kVec;
    const int64_t n = place.m0 + row0 + row, unit = place.u0 + in_tile;
    const int valid = static_cast<int>(min_of<int64_t>(hidden - unit, kVec));
    if (n < rows && valid > 0) visit(n, unit, valid, patch + row * kPitch + in_tile);
  }
}

/// Launches one block per tile of Work.
template <class Work, class Args>
void launch_fused_tiles(const char *name, void (*kernel)(MP_PARAM(Args)), const Device &device,
                        const Args &args, mp_stream_t stream) {
  launch(name, kernel, device,
         {.num_blocks = Work::Tiles::count(args),
          .num_threads = Work::Tile::kThreads,
          .smem_bytes = Work::kSmemBytes,
          .uses_pdl = true},
         stream, args);
}

}  // namespace mp::MP_TARGET
