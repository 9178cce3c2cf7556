// Lengths of sequences, dropout masks and rows of matrices, shared by the kernels of a recurrent
// network; arguments and launches of the kernels of a step and of all steps.
//
// Matrices of a step begin at the first row of the step; layer outputs and slots also at the first
// column of the direction.
#pragma once

#include "kernels/rnn/cell.h"
#include "kernels/rnn/rnn_problem.h"
#include "kernels/simt/random.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- sequences

/// Order and number of the steps of each sequence, in one direction.
struct StepOrder {
  const int32_t *lengths;  ///< NULL: all timesteps, or packed (see StepCommon::count)
  int32_t timesteps;
  int32_t direction;

  /// True if the length is out of range; outputs of the sequence are then NaN.
  MP_DEVICE bool is_broken(int64_t n) const {
    return lengths != nullptr && (lengths[n] < 0 || lengths[n] > timesteps);
  }
  MP_DEVICE int32_t length(int64_t n) const {
    return lengths == nullptr || is_broken(n) ? timesteps : lengths[n];
  }
  MP_DEVICE bool has(int64_t n, int32_t t) const { return t < length(n); }
  /// True if the previous state of sequence n at step t is h_0.
  MP_DEVICE bool is_first(int64_t n, int32_t t) const {
    return direction == 0 ? t == 0 : t + 1 >= length(n);
  }
};

/// Matrix whose element type is stored elsewhere; base is NULL if absent.
struct RowMatrix {
  void *base;
  int64_t ld;

  MP_HD int64_t at(int64_t row, int64_t col) const { return row * ld + col; }
};

/// Dropout mask between two layers, recomputed by each pass from seed, offset, layer and the
/// element's position; independent of the number of steps.
struct Dropout {
  float keep_factor;   ///< 1 / (1 - p); 0 = no dropout
  uint32_t threshold;  ///< elements with a random word below it are dropped
  uint32_t layer;      ///< layer that reads the elements
  uint64_t seed;
  const uint64_t *offset;
  int64_t batch, directions, quads_per_row;

  /// x *= mask, for units [col, col + kVec) of one direction; col must be a multiple of 4.
  MP_DEVICE void apply(float (&x)[kVec], int32_t t, int64_t n, int64_t direction,
                       int64_t col) const {
    if (keep_factor == 0.0f) return;
    const uint64_t draw = offset != nullptr ? *offset : 0;
    const int64_t row = (t * batch + n) * directions + direction;
    MP_UNROLL
    for (int i = 0; i < kVec; i += kQuad) {
      const uint64_t quad = static_cast<uint64_t>(row * quads_per_row + (col + i) / kQuad);
      drop_quad(x + i, draw_quad(seed, draw, layer, quad), threshold, keep_factor);
    }
  }
};

// ---------------------------------------------------------------------------- kernels of a step

/// Step of one direction of one layer.
struct StepCommon {
  mp_rnn_cell_t cell;
  uint32_t flags;
  mp_dtype_t dtype;
  int64_t hidden;
  StepOrder order;
  int32_t t;
  int64_t count;      ///< rows
  RowMatrix slots;    ///< dtype; absent in inference
  int64_t last_slot;  ///< column of the slot that is not a gate
  float clip;         ///< see CellOptions

  MP_HD int64_t slot_column(int slot, int gates) const {
    return slot < gates ? slot * hidden : last_slot;
  }
  MP_HD CellOptions options() const { return {clip, cell == MP_RNN_RELU}; }
};

struct ForwardStep : StepCommon {
  RowMatrix p;               ///< fp32: x_t W_ih^T
  RowMatrix x;               ///< dtype: x_t, if the layer has no W_ih
  RowMatrix q;               ///< fp32: h W_hh^T
  const float *b_ih, *b_hh;  ///< NULL = 0
  RowMatrix h, h_next;       ///< dtype: h of the previous step and of this one; may be equal
  RowMatrix c;               ///< fp32: c of the previous step, replaced by that of this one
  RowMatrix reset_h;         ///< dtype: r h
  RowMatrix saved_c, saved_h, y;

  /// True if sequences without the step must copy h to h_next.
  MP_DEVICE bool moves_h() const { return h.base != h_next.base; }
};

struct BackwardStep : StepCommon {
  RowMatrix saved_c, saved_h;    ///< c' and h' of this step
  RowMatrix c_before, h_before;  ///< same, previous step
  int64_t count_before;          ///< rows of the previous step; later rows begin with this step
  RowMatrix c0, h0;
  RowMatrix dy;
  Dropout dropout;      ///< dropout of the layer's output
  RowMatrix dh, dc;     ///< fp32: of this step, replaced by those of the previous step
  RowMatrix d_reset_h;  ///< fp32
  float *found_inf;

  /// True if the previous state of sequence n is h_0.
  MP_DEVICE bool is_first(int64_t n) const { return n >= count_before || order.is_first(n, t); }
};

void launch_step_forward(const Device &, const ForwardStep &, mp_stream_t);
/// Computes reset_h = r h.
void launch_reset_h(const Device &, const ForwardStep &, mp_stream_t);

void launch_step_backward(const Device &, const BackwardStep &, mp_stream_t);
/// Computes the gradient of r, and its part of dh, from d_reset_h.
void launch_reset_backward(const Device &, const BackwardStep &, mp_stream_t);

// ---------------------------------------------------------------------------- kernels of all steps

/// Steps [t, t + steps) of `count` sequences, each with `parts` rows per step.
struct StepRange {
  int32_t t, steps;
  int64_t count, parts;
};

/// Copy of rows to a dense matrix, with dropout; zeros if a sequence does not have the step.
/// With `before`, each row is that of the previous step.
struct GatherRows {
  mp_dtype_t dtype;
  StepOrder order;
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
