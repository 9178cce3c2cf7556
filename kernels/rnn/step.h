// What the kernels of a step work on, and how they are launched (step_forward.cu, step_backward.cu).
//
// Matrices begin with the first row of the step; those of layer outputs and slots with the first column of the
// direction.
#pragma once

#include "kernels/rnn/cell.h"
#include "kernels/rnn/steps.h"

namespace mp::MP_TARGET {

/// A step of one direction of one layer.
struct StepCommon {
  mp_rnn_cell_t cell;
  uint32_t flags;
  mp_dtype_t dtype;
  int64_t hidden;
  Walk walk;
  int32_t t;
  int64_t count;      ///< rows
  Rows slots;         ///< of dtype; none in inference
  int64_t last_slot;  ///< column of the slot that is no gate
  float clip;         ///< as CellOptions has it

  MP_HD int64_t slot_column(int slot, int gates) const {
    return slot < gates ? slot * hidden : last_slot;
  }
  MP_HD CellOptions options() const { return {clip, cell == MP_RNN_RELU}; }
};

struct ForwardStep : StepCommon {
  Rows p;                    ///< fp32: x_t W_ih^T
  Rows x;                    ///< of dtype: x_t, where there is no W_ih
  Rows q;                    ///< fp32: h W_hh^T
  const float *b_ih, *b_hh;  ///< NULL: 0
  Rows h, h_next;            ///< from the step before, and of this one; may be the same
  Rows c;                    ///< fp32: from the step before, and then of this one
  Rows reset_h;              ///< of dtype
  Rows saved_c, saved_h, y;
};

struct BackwardStep : StepCommon {
  Rows saved_c, saved_h;    ///< of this step
  Rows c_before, h_before;  ///< of the step that comes before it
  int64_t count_before;     ///< rows that this has: what lies behind begins here
  Rows c0, h0;
  Rows dy;
  Dropout dropout;  ///< between dy and h'
  Rows dh, dc;      ///< fp32: of this step, and then of the one before
  Rows d_reset_h;   ///< fp32
  float *found_inf;

  /// Whether sequence n comes to this step from h_0.
  MP_DEVICE bool is_first(int64_t n) const { return n >= count_before || walk.is_first(n, t); }
};

void launch_step_forward(const Device &, const ForwardStep &, mp_stream_t);
/// reset_h = r h
void launch_reset_h(const Device &, const ForwardStep &, mp_stream_t);

void launch_step_backward(const Device &, const BackwardStep &, mp_stream_t);
/// The gradient of r, and its part of dh, from d_reset_h.
void launch_reset_backward(const Device &, const BackwardStep &, mp_stream_t);

}  // namespace mp::MP_TARGET
