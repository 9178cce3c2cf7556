// Arguments and launches of the kernels of a step (step_forward.cu, step_backward.cu).
//
// Matrices begin at the first row of the step; layer outputs and slots also at the first column of
// the direction.
#pragma once

#include "kernels/rnn/cell.h"
#include "kernels/rnn/steps.h"

namespace mp::MP_TARGET {

/// Step of one direction of one layer.
struct StepCommon {
  mp_rnn_cell_t cell;
  uint32_t flags;
  mp_dtype_t dtype;
  int64_t hidden;
  Walk walk;
  int32_t t;
  int64_t count;      ///< rows
  Rows slots;         ///< dtype; absent in inference
  int64_t last_slot;  ///< column of the slot that is not a gate
  float clip;         ///< see CellOptions

  MP_HD int64_t slot_column(int slot, int gates) const {
    return slot < gates ? slot * hidden : last_slot;
  }
  MP_HD CellOptions options() const { return {clip, cell == MP_RNN_RELU}; }
};

struct ForwardStep : StepCommon {
  Rows p;                    ///< fp32: x_t W_ih^T
  Rows x;                    ///< dtype: x_t, if the layer has no W_ih
  Rows q;                    ///< fp32: h W_hh^T
  const float *b_ih, *b_hh;  ///< NULL = 0
  Rows h, h_next;            ///< dtype: h of the previous step and of this one; may be equal
  Rows c;                    ///< fp32: c of the previous step, replaced by that of this one
  Rows reset_h;              ///< dtype: r h
  Rows saved_c, saved_h, y;
};

struct BackwardStep : StepCommon {
  Rows saved_c, saved_h;    ///< c' and h' of this step
  Rows c_before, h_before;  ///< same, previous step
  int64_t count_before;     ///< rows of the previous step; later rows begin with this step
  Rows c0, h0;
  Rows dy;
  Dropout dropout;  ///< dropout of the layer's output
  Rows dh, dc;      ///< fp32: of this step, replaced by those of the previous step
  Rows d_reset_h;   ///< fp32
  float *found_inf;

  /// True if the previous state of sequence n is h_0.
  MP_DEVICE bool is_first(int64_t n) const { return n >= count_before || walk.is_first(n, t); }
};

void launch_step_forward(const Device &, const ForwardStep &, mp_stream_t);
/// Computes reset_h = r h.
void launch_reset_h(const Device &, const ForwardStep &, mp_stream_t);

void launch_step_backward(const Device &, const BackwardStep &, mp_stream_t);
/// Computes the gradient of r, and its part of dh, from d_reset_h.
void launch_reset_backward(const Device &, const BackwardStep &, mp_stream_t);

}  // namespace mp::MP_TARGET
