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

#include "kernels/rnn/step.h"

namespace mp::MP_TARGET {

/// Of both directions.
struct FusedForward {
  ForwardStep steps[2];
  const void *w_hh[2];
  int64_t directions;
  int64_t rows;  ///< of the state: step.count, or packed more
};

struct FusedBackward {
  BackwardStep steps[2];
  const void *w_hh[2];
  Rows behind[2];           ///< slots of the step behind; none at first
  int64_t count_behind[2];  ///< its rows
  int64_t directions;
  int64_t rows;
  int64_t gate_rows[2];  ///< of W_hh, by slot 0 and what follows it; and by the last slot
};

/// Instantiated for half and bf16, in a file each.
template <class T>
void launch_fused_forward(const Device &, const FusedForward &, mp_stream_t);
template <class T>
void launch_fused_backward(const Device &, const FusedBackward &, mp_stream_t);

}  // namespace mp::MP_TARGET
