// Cell of kVec adjacent units of a sequence in one step, with its loads and stores.  Shared by all
// kernels, whichever computes the product with W_hh.
#pragma once

#include "kernels/rnn/cell.h"
#include "kernels/rnn/step.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

template <int kRows>
MP_DEVICE void fill(float (&x)[kRows][kVec], float value) {
  MP_UNROLL
  for (int r = 0; r < kRows; r++) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) x[r][i] = value;
  }
}

MP_DEVICE void load_fp32(float (&x)[kVec], const RowMatrix &rows, int64_t row, int64_t col,
                         int valid) {
  load_vector(x, static_cast<const float *>(rows.base) + rows.at(row, col), valid);
}
MP_DEVICE void store_fp32(const RowMatrix &rows, int64_t row, int64_t col, const float (&x)[kVec],
                          int valid) {
  store_vector(static_cast<float *>(rows.base) + rows.at(row, col), x, valid);
}

// ---------------------------------------------------------------------------- forward

MP_DEVICE void add_bias(float (&a)[kVec], const float *bias, const float (&b)[kVec]) {
  if (bias == nullptr) return;
  MP_UNROLL
  for (int i = 0; i < kVec; i++) a[i] += b[i];
}

/// Loads p of the first kGates gates, and adds the biases to p and q.  All loads of a gate are
/// issued before their results are used.
template <int kGates>
MP_DEVICE void load_arguments(float (&p)[kGates][kVec], float (&q)[kGates][kVec],
                              const ForwardStep &step, int64_t n, int64_t unit, int valid) {
  const bool skips_input = step.x.base != nullptr;
  if (skips_input) {
    load_vector(p[0], step.dtype, step.x.base, step.x.at(n, unit), valid);
    MP_UNROLL
    for (int g = 1; g < kGates; g++) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) p[g][i] = p[0][i];
    }
  }
  MP_UNROLL
  for (int g = 0; g < kGates; g++) {
    const int64_t row = g * step.hidden + unit;
    float b_ih[kVec], b_hh[kVec];
    if (!skips_input) load_fp32(p[g], step.p, n, row, valid);
    if (step.b_ih != nullptr) load_vector(b_ih, step.b_ih + row, valid);
    if (step.b_hh != nullptr) load_vector(b_hh, step.b_hh + row, valid);
    add_bias(p[g], step.b_ih, b_ih);
    add_bias(q[g], step.b_hh, b_hh);
  }
}

/// Advances h and c by one step; saves the gates in training.
template <class Cell>
MP_DEVICE void advance(const ForwardStep &step, int64_t n, int64_t unit, int valid,
                       float (&q)[Cell::kGates][kVec], float (&h)[kVec], float (&c)[kVec]) {
  float p[Cell::kGates][kVec], slots[Cell::kSlots][kVec];
  load_arguments(p, q, step, n, unit, valid);
  MP_UNROLL
  for (int i = 0; i < kVec; i++) {
    float p_of_unit[Cell::kGates], q_of_unit[Cell::kGates], slots_of_unit[Cell::kSlots];
    MP_UNROLL
    for (int g = 0; g < Cell::kGates; g++) p_of_unit[g] = p[g][i], q_of_unit[g] = q[g][i];
    const CellState after =
        Cell::forward(p_of_unit, q_of_unit, {h[i], c[i]}, slots_of_unit, step.options());
    MP_UNROLL
    for (int s = 0; s < Cell::kKept; s++) slots[s][i] = slots_of_unit[s];
    h[i] = after.h;
    c[i] = after.c;
  }
  MP_UNROLL
  for (int s = 0; s < Cell::kKept; s++)
    store_if_there(step.dtype, step.slots, n, step.slot_column(s, Cell::kGates) + unit, slots[s],
                   valid);
}

/// Runs the cell forward.
/// @param n  row of the state; rows >= step.count do not have this step
/// @param q  products with W_hh
template <class Cell>
MP_DEVICE void forward_units(const ForwardStep &step, int64_t n, int64_t unit, int valid,
                             float (&q)[Cell::kGates][kVec]) {
  float state[2][kVec] = {};
  auto &h = state[0], &c = state[1];
  const bool has_row = n < step.count, has_step = has_row && step.order.has(n, step.t);
  const bool moves_h = step.h.base != step.h_next.base;
  if (has_step ? Cell::kReadsH : moves_h)
    load_vector(h, step.dtype, step.h.base, step.h.at(n, unit), valid);
  if (has_step) {
    if (Cell::kHasC) load_fp32(c, step.c, n, unit, valid);
    advance<Cell>(step, n, unit, valid, q, h, c);
    if (step.order.is_broken(n)) fill(state, float_from_bits(0x7fffffffu));
    if (Cell::kHasC) store_fp32(step.c, n, unit, c, valid);
    if (Cell::kHasC) store_if_there(MP_FP32, step.saved_c, n, unit, c, valid);
  }
  if (has_step || moves_h)
    store_vector(step.dtype, step.h_next.base, step.h_next.at(n, unit), h, valid);
  if (!has_row) return;
  if (!has_step) fill(state, 0.0f);
  store_if_there(step.dtype, step.saved_h, n, unit, h, valid);
  store_if_there(step.dtype, step.y, n, unit, h, valid);
}

// ---------------------------------------------------------------------------- backward

/// Loads h or c of the previous step: the saved one, or h_0 or c_0.
MP_DEVICE void load_before(float (&x)[kVec], const BackwardStep &step, mp_dtype_t dtype,
                           const RowMatrix &before, const RowMatrix &initial, int64_t n,
                           int64_t unit, int valid) {
  load_or_zero(x, dtype, step.is_first(n) ? initial : before, n, unit, valid);
}

/// dh += dropout(dy)
MP_DEVICE void add_dy(float (&dh)[kVec], const BackwardStep &step, int64_t n, int64_t unit,
                      int valid) {
  float dy[kVec];
  load_vector(dy, step.dtype, step.dy.base, step.dy.at(n, unit), valid);
  step.dropout.apply(dy, step.t, n, step.order.direction, unit);
  MP_UNROLL
  for (int i = 0; i < kVec; i++) dh[i] += dy[i];
}

/// Computes the gradients of the gates.  dh becomes the gradient of the previous step's h, without
/// the part through W_hh.
template <class Cell>
MP_DEVICE void go_back(const BackwardStep &step, int64_t n, int64_t unit, int valid,
                       float (&slots)[Cell::kSlots][kVec], float (&dh)[kVec]) {
  constexpr bool kReadsBefore = Cell::kGates > 1;  // plain cells read only h'
  float h_before[kVec] = {}, c_before[kVec] = {}, h[kVec] = {}, c[kVec] = {}, dc[kVec] = {};
  add_dy(dh, step, n, unit, valid);
  MP_UNROLL
  for (int s = 0; s < Cell::kKept; s++)
    load_vector(slots[s], step.dtype, step.slots.base,
                step.slots.at(n, step.slot_column(s, Cell::kGates) + unit), valid);
  if (Cell::kHasC) {
    load_fp32(dc, step.dc, n, unit, valid);
    load_fp32(c, step.saved_c, n, unit, valid);
    load_before(c_before, step, MP_FP32, step.c_before, step.c0, n, unit, valid);
  } else if (kReadsBefore) {
    load_before(h_before, step, step.dtype, step.h_before, step.h0, n, unit, valid);
  } else {
    load_vector(h, step.dtype, step.saved_h.base, step.saved_h.at(n, unit), valid);
  }
  MP_UNROLL
  for (int i = 0; i < kVec; i++) {
    float slots_of_unit[Cell::kSlots];
    MP_UNROLL
    for (int s = 0; s < Cell::kKept; s++) slots_of_unit[s] = slots[s][i];
    const CellState part = Cell::backward(slots_of_unit, {h_before[i], c_before[i]}, {h[i], c[i]},
                                          {dh[i], dc[i]}, step.options());
    MP_UNROLL
    for (int s = 0; s < Cell::kSlots; s++) slots[s][i] = slots_of_unit[s];
    dh[i] = part.h;
    dc[i] = part.c;
  }
  if (Cell::kHasC) store_fp32(step.dc, n, unit, dc, valid);
}

/// Runs the cell backward.
/// @param n        row of the state, as for forward_units
/// @param product  added to dh: gradients of the next step's gates times W_hh
template <class Cell>
MP_DEVICE void backward_units(const BackwardStep &step, int64_t n, int64_t unit, int valid,
                              const float (&product)[kVec], AmaxTracker &watch) {
  float dh[kVec], slots[Cell::kSlots][kVec] = {};
  const bool has_row = n < step.count;
  load_fp32(dh, step.dh, n, unit, valid);
  MP_UNROLL
  for (int i = 0; i < kVec; i++) dh[i] += product[i];
  if (has_row && step.order.has(n, step.t)) go_back<Cell>(step, n, unit, valid, slots, dh);
  store_fp32(step.dh, n, unit, dh, valid);
  if (!has_row) return;
  if (step.order.is_broken(n)) fill(slots, float_from_bits(0x7fffffffu));
  MP_UNROLL
  for (int s = 0; s < Cell::kSlots; s++) {
    store_vector(step.dtype, step.slots.base,
                 step.slots.at(n, step.slot_column(s, Cell::kGates) + unit), slots[s], valid);
    watch.see(step.dtype, slots[s], valid);
  }
}

}  // namespace mp::MP_TARGET
