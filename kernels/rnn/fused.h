// Fused step: one launch with the product by W_hh on tensor cores, and the cell as its epilogue, by
// WMMA (fused_wmma.cu) or wgmma (fused_wgmma.cu).
//
// Forward: a tile has 16 or 32 units with all of their gates in adjacent columns; [i f g o] of 16
// units are 64 columns.  All inputs of a unit's cell are therefore in one patch of one warp.
//
// Backward: the product of W_hh with the gate gradients of the next time step gives dh.  The cell
// computes this step's gate gradients from it, for the next launch.
//
// With WMMA, blocks have only two warps and tiles few units: a step has few rows and is bound by
// reading W_hh, a read that all SMs should share.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "kernels/gemm/cluster_product.h"
#include "kernels/gemm/wmma_loop.h"
#include "kernels/rnn/cell.h"
#include "kernels/rnn/step.h"

namespace mp::MP_TARGET {

/// Forward step of both directions.
struct FusedForward {
  ForwardStep steps[2];
  const void *w_hh[2];
  int64_t directions;
  int64_t rows;       ///< rows of the state; more than step.count if packed
  bool follows_step;  ///< the previous launch is a fused step, too
};

/// Backward step of both directions.
struct FusedBackward {
  BackwardStep steps[2];
  const void *w_hh[2];
  RowMatrix behind[2];      ///< slots of the next time step; absent for the last
  int64_t count_behind[2];  ///< rows of the next time step
  int64_t directions;
  int64_t rows;
  bool follows_step;
  int64_t gate_rows[2];  ///< rows of W_hh multiplied by slots from 0 on, and by the last slot
};

// ---------------------------------------------------------------------------- tiles

/// Direction, first row and first unit of a tile.
struct FusedCoord {
  int64_t direction, m0, u0;

  MP_DEVICE int row() const { return static_cast<int>(m0); }
  MP_DEVICE int unit() const { return static_cast<int>(u0); }
};

/// Partition of a step into tiles of kM rows and kUnits units of a direction.
template <int kM, int kUnits>
struct FusedTiles {
  static MP_HD int64_t per_row(int64_t hidden) { return ceil_div<int64_t>(hidden, kUnits); }

  template <class Args>
  static int64_t count(const Args &args) {
    return args.directions * ceil_div<int64_t>(args.rows, kM) * per_row(args.steps[0].hidden);
  }

  /// Returns tile `number`.  Numbers iterate over directions first, then units, then rows.
  template <class Args>
  static MP_DEVICE FusedCoord coord(const Args &args, uint32_t number) {
    const auto directions = static_cast<uint32_t>(args.directions);
    const auto in_row = static_cast<uint32_t>(per_row(args.steps[0].hidden));
    const uint32_t tile = number / directions, row = tile / in_row;
    return {number % directions, int64_t{row} * kM, int64_t{tile - row * in_row} * kUnits};
  }
};

/// WMMA, forward: kM rows; more gates leave room for fewer units.
template <class Cell>
constexpr int kFusedForwardUnits = Cell::kGates == 1 ? 32 : 16;
template <class Cell, int kM>
using FusedForwardTile = WmmaTile<kM, Cell::kGates * kFusedForwardUnits<Cell>, kM / 2,
                                  Cell::kGates * kFusedForwardUnits<Cell>, 6, 1>;
/// WMMA, backward: kM rows and kUnits units of dh.
template <int kM, int kUnits>
using FusedBackwardTile = WmmaTile<kM, kUnits, kM / 2, kUnits, 6, 1>;

/// wgmma: kN columns for kUnits units.
template <int kN, int kUnits_, int kStages>
struct FusedWgmmaTile : ClusterProductTile<kN, kUnits_, kStages, false> {
  static constexpr int kUnits = kUnits_;
  using Tiles = FusedTiles<FusedWgmmaTile::kM, kUnits>;
};

/// wgmma, forward: 64 units, or fewer to fit two blocks per SM, one of them of the next step.
template <class Cell>
constexpr int kFusedWgmmaUnits = Cell::kGates == 4 ? 32 : 64;
template <class Cell>
using FusedWgmmaForwardTile =
    FusedWgmmaTile<Cell::kGates * kFusedWgmmaUnits<Cell>, kFusedWgmmaUnits<Cell>,
                   Cell::kGates == 1   ? 6
                   : Cell::kGates == 3 ? 3
                                       : 4>;
using FusedWgmmaBackwardTile = FusedWgmmaTile<64, 64, 6>;

// ---------------------------------------------------------------------------- launch

inline bool all_aligned(std::initializer_list<const void *> addresses) {
  uintptr_t bits = 0;
  for (const void *const address : addresses) bits |= reinterpret_cast<uintptr_t>(address);
  return bits % 16 == 0;
}

/// True if W_hh and h are aligned for TMA; otherwise the WMMA kernel replaces the wgmma kernel.
inline bool has_maps(const FusedForward &args) {
  return all_aligned({args.w_hh[0], args.w_hh[1], args.steps[0].h.base, args.steps[1].h.base,
                      args.steps[0].h_next.base, args.steps[1].h_next.base});
}
inline bool has_maps(const FusedBackward &args) {
  return all_aligned({args.w_hh[0], args.w_hh[1]});
}

/// True if each vector of kVec elements is 16-byte aligned, in a matrix of `bytes` per element.
inline bool is_whole(const RowMatrix &matrix, int64_t bytes) {
  return matrix.base == nullptr || (all_aligned({matrix.base}) && matrix.ld * bytes % 16 == 0);
}
/// True if all vectors of the cell are 16-byte aligned; hidden is a multiple of kVec.
inline bool has_whole_vectors(const FusedForward &args) {
  return std::all_of(args.steps, args.steps + args.directions, [](const ForwardStep &step) {
    return all_aligned({step.b_ih, step.b_hh}) && is_whole(step.p, 4) && is_whole(step.c, 4) &&
           is_whole(step.saved_c, 4) && is_whole(step.x, 2) && is_whole(step.h, 2) &&
           is_whole(step.h_next, 2) && is_whole(step.slots, 2) && is_whole(step.saved_h, 2) &&
           is_whole(step.y, 2);
  });
}
inline bool has_whole_vectors(const FusedBackward &args) {
  return std::all_of(args.steps, args.steps + args.directions, [](const BackwardStep &step) {
    return is_whole(step.dh, 4) && is_whole(step.dc, 4) && is_whole(step.c0, 4) &&
           is_whole(step.c_before, 4) && is_whole(step.saved_c, 4) && is_whole(step.h0, 2) &&
           is_whole(step.h_before, 2) && is_whole(step.saved_h, 2) && is_whole(step.slots, 2) &&
           is_whole(step.dy, 2);
  });
}

void launch_fused_forward(const Device &, const FusedForward &, mp_stream_t);
void launch_fused_backward(const Device &, const FusedBackward &, mp_stream_t);
void launch_fused_wgmma_forward(const Device &, const FusedForward &, mp_stream_t);
void launch_fused_wgmma_backward(const Device &, const FusedBackward &, mp_stream_t);

/// Calls f with the cell.  MP_RNN_FLAG_RESET_FIRST has two products per step and is not fused.
template <class F>
void with_fused_cell(const StepCommon &step, const F &f) {
  with_cell(step.cell, step.flags, [&](auto cell) {
    if constexpr (!std::is_same_v<decltype(cell), ResetFirstCell>) f(cell);
  });
}

}  // namespace mp::MP_TARGET
