// Operands that do not lie in memory as a product wants them, and what is left once all steps are done
// (rows.cu, weight_grads.cu).
#pragma once

#include "kernels/rnn/steps.h"

namespace mp::MP_TARGET {

/// Steps [t, t + steps), of `count` sequences each, of which a sequence has `parts` rows.
struct StepRange {
  int32_t t, steps;
  int64_t count, parts;
};

/// A dense copy of rows as they are multiplied: zeros where a sequence has no step, dropped elements
/// dropped; or of the rows of the step before each.
struct GatherRows {
  mp_dtype_t dtype;
  Walk walk;
  StepRange range;
  int64_t columns;
  const void *from;  ///< of the first step; with `before` of the step before that
  int64_t from_step, from_row;
  bool before;
  int64_t count_before;  ///< sequences that the step before has
  const void *initial;   ///< h_0; NULL: 0
  Dropout dropout;
  void *to;
};
void launch_gather_rows(const Device &, const GatherRows &, mp_stream_t);

/// dx = the sum of the gradients of all gates, where x was added to each of them.
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

/// Gradients of biases from the sums of the columns of slots.
struct BiasGrads {
  int64_t directions, gates, hidden;
  bool n_is_apart;  ///< b_hh of the gate n has the sums of the last slot
  bool accumulate;
  const float *sums;
  float *b_ih[2], *b_hh[2];  ///< NULL: not wanted
  float *found_inf, *amax;
};
void launch_bias_grads(const Device &, const BiasGrads &, mp_stream_t);

}  // namespace mp::MP_TARGET
