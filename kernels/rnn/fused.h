// A step in one launch: the product with W_hh on the tensor cores through WMMA, and the cell as its epilogue.
//
// Forward a tile has 16 or 32 units and all of their gates, which lie beside each other in it: [i f g o] of
// 16 units are 64 columns.  So what the cell of a unit wants is in one patch of one warp.
//
// Backward the product comes first too: that of the gradients of the gates of the step behind, which gives dh; then
// the cell, which makes the gradients of this step's gates from it, for the next launch.
//
// Blocks are small, two warps, and tiles are few units wide: a step has few rows, and what it takes is the reading of W_hh,
// in which all SMs are to share.
#pragma once

#include <initializer_list>

#include "kernels/rnn/cell.h"
#include "kernels/rnn/step.h"

namespace mp::MP_TARGET {

/// Of both directions.
struct FusedForward {
  ForwardStep steps[2];
  const void *w_hh[2];
  int64_t directions;
  int64_t rows;       ///< of the state: step.count, or packed more
  bool follows_step;  ///< the launch before this one is that of a fused step, too
};

struct FusedBackward {
  BackwardStep steps[2];
  const void *w_hh[2];
  Rows behind[2];           ///< slots of the step behind; none at first
  int64_t count_behind[2];  ///< its rows
  int64_t directions;
  int64_t rows;
  bool follows_step;
  int64_t gate_rows[2];  ///< of W_hh, by slot 0 and what follows it; and by the last slot
};

/// Which direction, rows and units a tile has.
struct FusedPlace {
  int64_t direction, m0, u0;

  MP_DEVICE int row() const { return static_cast<int>(m0); }
  MP_DEVICE int unit() const { return static_cast<int>(u0); }
};

/// A step in tiles of kM rows and kUnits units of a direction.
template <int kM, int kUnits>
struct FusedTiles {
  static MP_HD int64_t per_row(int64_t hidden) { return ceil_div<int64_t>(hidden, kUnits); }

  template <class Args>
  static int64_t count(const Args &args) {
    return args.directions * ceil_div<int64_t>(args.rows, kM) * per_row(args.steps[0].hidden);
  }

  /// Both directions of a tile have neighbouring numbers, and tiles of the same rows follow each other.
  template <class Args>
  static MP_DEVICE FusedPlace place(const Args &args, int64_t number) {
    const int64_t tile = number / args.directions, in_row = per_row(args.steps[0].hidden);
    return {number % args.directions, tile / in_row * kM, tile % in_row * kUnits};
  }
};

inline bool all_aligned(std::initializer_list<const void *> addresses) {
  uintptr_t bits = 0;
  for (const void *const address : addresses) bits |= reinterpret_cast<uintptr_t>(address);
  return bits % 16 == 0;
}

/// Whether TMA can read what the caller gave: W_hh, h_n.  Where it cannot, WMMA takes the place of wgmma.
inline bool has_maps(const FusedForward &args) {
  return all_aligned({args.w_hh[0], args.w_hh[1], args.steps[0].h.base, args.steps[1].h.base,
                      args.steps[0].h_next.base, args.steps[1].h_next.base});
}
inline bool has_maps(const FusedBackward &args) {
  return all_aligned({args.w_hh[0], args.w_hh[1]});
}

void launch_fused_forward(const Device &, const FusedForward &, mp_stream_t);
void launch_fused_backward(const Device &, const FusedBackward &, mp_stream_t);
void launch_fused_wgmma_forward(const Device &, const FusedForward &, mp_stream_t);
void launch_fused_wgmma_backward(const Device &, const FusedBackward &, mp_stream_t);

/// Calls f with the cell.  MP_RNN_RESET_FIRST has two products in a step, and no fused one.
template <class F>
void with_fused_cell(const StepCommon &step, const F &f) {
  with_cell(step.cell, step.flags, [&](auto cell) {
    if constexpr (!std::is_same_v<decltype(cell), ResetFirstCell>) f(cell);
  });
}

}  // namespace mp::MP_TARGET
