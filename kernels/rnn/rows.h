// Kernels over the rows of all steps: gathered operands of products, sums over gates, and bias
// gradients (rows.cu, bias_grads.cu).
#pragma once

#include "kernels/rnn/steps.h"

namespace mp::MP_TARGET {

/// Steps [t, t + steps) of `count` sequences, each with `parts` rows per step.
struct StepRange {
  int32_t t, steps;
  int64_t count, parts;
};

/// Copy of rows to a dense matrix, with dropout; zeros if a sequence does not have the step.
/// With `before`, each row is that of the previous step.
struct GatherRows {
  mp_dtype_t dtype;
  Walk walk;
  StepRange range;
  int64_t columns;
  const void *from;  ///< row 0 of the first step; with `before`, of the step before it
  int64_t from_step, from_row;
  bool before;
  int64_t count_before;  ///< sequences that have the previous step
  const void *initial;   ///< h_0; NULL = 0
  Dropout dropout;
  void *to;
};
void launch_gather_rows(const Device &, const GatherRows &, mp_stream_t);

/// dx = sum of the gradients of all gates, for a layer without W_ih, which adds x to each gate.
struct SumGates {
  mp_dtype_t dtype;
  StepRange range;
  int64_t hidden, summands;  ///< gates of all directions
  const void *slots;
  int64_t ld_slots;
  void *dx;
  int64_t dx_step, dx_row;
  float *found_inf;
};
void launch_sum_gates(const Device &, const SumGates &, mp_stream_t);

/// Bias gradients from the column sums of slots.
struct BiasGrads {
  int64_t directions, gates, hidden;
  bool n_is_apart;  ///< b_hh of the gate n uses the sums of the last slot
  bool accumulate;
  const float *sums;
  float *b_ih[2], *b_hh[2];  ///< NULL = not computed
  float *found_inf, *amax;
};
void launch_bias_grads(const Device &, const BiasGrads &, mp_stream_t);

}  // namespace mp::MP_TARGET
