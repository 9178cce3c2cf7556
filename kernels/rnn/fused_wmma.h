// What a fused step through WMMA has in common, forward and backward: its launch, and the way from sums to cells.
#pragma once

#include "kernels/gemm/matrix_loader.h"
#include "kernels/rnn/fused.h"
#include "kernels/rnn/fused_loaders.h"
#include "kernels/rnn/units.h"

namespace mp::MP_TARGET {

/// Forward: kM rows, and as many units as the number of gates leaves room for.
template <class Cell>
constexpr int kFusedForwardUnits = Cell::kGates == 1 ? 32 : 16;
template <class Cell, int kM>
using FusedForwardTile = WmmaTile<kM, Cell::kGates * kFusedForwardUnits<Cell>, kM / 2,
                                  Cell::kGates * kFusedForwardUnits<Cell>, 6, 1>;
/// Backward: kM rows and kUnits units of dh.
template <int kM, int kUnits>
using FusedBackwardTile = WmmaTile<kM, kUnits, kM / 2, kUnits, 6, 1>;

/// Calls visit(row of the state, unit, valid units, sums) for the runs of a patch that are this lane's and lie in
/// the state.
/// @param patch  from row `row0` and the first column of the tile on
template <int kUnits, int kPitch, class Visit>
MP_DEVICE void visit_units(const float *patch, const FusedPlace &place, int row0, int64_t rows,
                           int64_t hidden, Visit visit) {
  for (int i = lane_index(); i < wmma::kTile * kUnits / kVec; i += kWarpSize) {
    // Neighbouring lanes have neighbouring rows: the patch is read without bank conflicts, and two lanes fill a sector.
    const int row = i % wmma::kTile, in_tile = i / wmma::kTile * kVec;
    const int64_t n = place.m0 + row0 + row, unit = place.u0 + in_tile;
    const int valid = static_cast<int>(min_of<int64_t>(hidden - unit, kVec));
    if (n < rows && valid > 0) visit(n, unit, valid, patch + row * kPitch + in_tile);
  }
}

/// A block for each of Work's tiles.
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
