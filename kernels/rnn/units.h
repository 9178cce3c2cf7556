// Cell of kVec adjacent units of a sequence in one step, with its loads and stores.  Shared by all
// kernels, whichever computes the product with W_hh.
//
// Inputs are loaded and used by separate functions: fused steps issue the loads before the product,
// which hides their latency.
#pragma once

#include "kernels/rnn/access.h"
#include "kernels/rnn/cell.h"

namespace mp::MP_TARGET {

template <int kRows>
MP_DEVICE void fill(float (&x)[kRows][kVec], float value) {
  MP_UNROLL
  for (int r = 0; r < kRows; r++) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) x[r][i] = value;
  }
}

// ---------------------------------------------------------------------------- forward

/// p and the biases of the first kGates gates.
template <int kGates, class Access>
struct GateInputs {
  float p[kGates][kVec], b_ih[kGates][kVec], b_hh[kGates][kVec];
  typename Access::Vector x;  ///< p of all gates, if the layer has no W_ih

  MP_DEVICE void load(const ForwardStep &step, int64_t n, int64_t unit, int valid) {
    const bool skips_input = step.x.base != nullptr;
    if (skips_input) Access::load(x, step.dtype, step.x.base, step.x.at(n, unit), valid);
    MP_UNROLL
    for (int g = 0; g < kGates; g++) {
      const int64_t row = g * step.hidden + unit;
      if (!skips_input) load_row<Access>(p[g], step.p, n, row, valid);
      if (step.b_ih != nullptr) Access::load(b_ih[g], step.b_ih + row, valid);
      if (step.b_hh != nullptr) Access::load(b_hh[g], step.b_hh + row, valid);
    }
  }

  /// Adds the biases to p and q.
  MP_DEVICE void finish(const ForwardStep &step, float (&q)[kGates][kVec]) {
    if (step.x.base != nullptr) {
      MP_UNROLL
      for (int g = 0; g < kGates; g++) Access::widen(p[g], step.dtype, x);
    }
    MP_UNROLL
    for (int g = 0; g < kGates; g++) {
      if (step.b_ih != nullptr) add(p[g], b_ih[g]);
      if (step.b_hh != nullptr) add(q[g], b_hh[g]);
    }
  }

 private:
  static MP_DEVICE void add(float (&a)[kVec], const float (&b)[kVec]) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) a[i] += b[i];
  }
};

/// Inputs of the cell forward, besides the product with W_hh.
template <class Cell, class Access>
struct ForwardInputs {
  GateInputs<Cell::kGates, Access> gates;
  typename Access::Vector h;
  float c[kVec];
  bool has_row, has_step;

  /// @param n  row of the state; rows >= step.count do not have this step
  MP_DEVICE void load(const ForwardStep &step, int64_t n, int64_t unit, int valid) {
    has_row = n < step.count;
    has_step = has_row && step.order.has(n, step.t);
    if (has_step ? Cell::kReadsH : step.moves_h())
      Access::load(h, step.dtype, step.h.base, step.h.at(n, unit), valid);
    if (!has_step) return;
    gates.load(step, n, unit, valid);
    if (Cell::kHasC) load_row<Access>(c, step.c, n, unit, valid);
  }
};

/// Advances h and c by one step; saves the gates in training.
template <class Cell, class Access>
MP_DEVICE void advance(const ForwardStep &step, int64_t n, int64_t unit, int valid,
                       ForwardInputs<Cell, Access> &in, float (&q)[Cell::kGates][kVec],
                       float (&h)[kVec], float (&c)[kVec]) {
  float slots[Cell::kSlots][kVec];
  in.gates.finish(step, q);
  if (Cell::kReadsH) Access::widen(h, step.dtype, in.h);
  const auto run = [&](const CellOptions &options) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) {
      float p_of_unit[Cell::kGates], q_of_unit[Cell::kGates], slots_of_unit[Cell::kSlots];
      MP_UNROLL
      for (int g = 0; g < Cell::kGates; g++)
        p_of_unit[g] = in.gates.p[g][i], q_of_unit[g] = q[g][i];
      const CellState before{Cell::kReadsH ? h[i] : 0.0f, Cell::kHasC ? in.c[i] : 0.0f};
      const CellState after = Cell::forward(p_of_unit, q_of_unit, before, slots_of_unit, options);
      MP_UNROLL
      for (int s = 0; s < Cell::kKept; s++) slots[s][i] = slots_of_unit[s];
      h[i] = after.h;
      c[i] = after.c;
    }
  };
  const CellOptions options = step.options();
  if (Cell::kGates == 1 && options.is_relu)  // constant in the loop, which then has no branches
    run({options.clip, true});
  else
    run({options.clip, false});
  if (step.slots.base == nullptr) return;
  MP_UNROLL
  for (int s = 0; s < Cell::kKept; s++)
    Access::store(step.dtype, step.slots.base,
                  step.slots.at(n, step.slot_column(s, Cell::kGates) + unit),
                  Access::narrow(step.dtype, slots[s]), valid);
}

/// Runs the cell forward.
/// @param q  products with W_hh
template <class Cell, class Access>
MP_DEVICE void forward_units(const ForwardStep &step, int64_t n, int64_t unit, int valid,
                             ForwardInputs<Cell, Access> &in, float (&q)[Cell::kGates][kVec]) {
  typename Access::Vector h{};
  if (in.has_step) {
    float state[2][kVec];
    advance<Cell, Access>(step, n, unit, valid, in, q, state[0], state[1]);
    if (step.order.is_broken(n)) fill(state, float_from_bits(0x7fffffffu));
    if (Cell::kHasC) store_row<Access>(step.c, n, unit, state[1], valid);
    if (Cell::kHasC && step.saved_c.base != nullptr)
      store_row<Access>(step.saved_c, n, unit, state[1], valid);
    h = Access::narrow(step.dtype, state[0]);
  } else if (step.moves_h()) {
    h = in.h;
  }
  if (in.has_step || step.moves_h())
    Access::store(step.dtype, step.h_next.base, step.h_next.at(n, unit), h, valid);
  if (!in.has_row) return;
  if (!in.has_step) h = {};
  store_if_there<Access>(step.dtype, step.saved_h, n, unit, h, valid);
  store_if_there<Access>(step.dtype, step.y, n, unit, h, valid);
}

// ---------------------------------------------------------------------------- backward

/// Inputs of the cell backward, besides the product.
template <class Cell, class Access>
struct BackwardInputs {
  static constexpr bool kReadsBefore = Cell::kGates > 1;  ///< plain cells read only h'
  using Vector = typename Access::Vector;

  Vector dy, kept[Cell::kSlots], h;  ///< h: of the previous step if kReadsBefore
  float dh[kVec], dc[kVec], c[kVec], c_before[kVec];
  bool has_row, has_step;

  /// @param n  row of the state, as for the forward step
  MP_DEVICE void load(const BackwardStep &step, int64_t n, int64_t unit, int valid) {
    has_row = n < step.count;
    load_row<Access>(dh, step.dh, n, unit, valid);
    has_step = has_row && step.order.has(n, step.t);
    if (!has_step) return;
    Access::load(dy, step.dtype, step.dy.base, step.dy.at(n, unit), valid);
    MP_UNROLL
    for (int s = 0; s < Cell::kKept; s++)
      Access::load(kept[s], step.dtype, step.slots.base,
                   step.slots.at(n, step.slot_column(s, Cell::kGates) + unit), valid);
    if (Cell::kHasC) {
      load_row<Access>(dc, step.dc, n, unit, valid);
      load_row<Access>(c, step.saved_c, n, unit, valid);
      const RowMatrix &before = step.is_first(n) ? step.c0 : step.c_before;
      MP_UNROLL
      for (int i = 0; i < kVec; i++) c_before[i] = 0.0f;
      if (before.base != nullptr) load_row<Access>(c_before, before, n, unit, valid);
    } else if (kReadsBefore) {
      load_h_before(step, n, unit, valid);
    } else {
      Access::load(h, step.dtype, step.saved_h.base, step.saved_h.at(n, unit), valid);
    }
  }

  /// Loads h of the previous step: the saved one, or h_0.
  MP_DEVICE void load_h_before(const BackwardStep &step, int64_t n, int64_t unit, int valid) {
    const RowMatrix &before = step.is_first(n) ? step.h0 : step.h_before;
    h = {};
    if (before.base != nullptr) Access::load(h, step.dtype, before.base, before.at(n, unit), valid);
  }
};

/// Computes the gradients of the gates.  in.dh becomes the gradient of the previous step's h,
/// without the part through W_hh.
template <class Cell, class Access>
MP_DEVICE void go_back(const BackwardStep &step, int64_t n, int64_t unit, int valid,
                       BackwardInputs<Cell, Access> &in, float (&slots)[Cell::kSlots][kVec]) {
  float dy[kVec], h[kVec] = {};
  Access::widen(dy, step.dtype, in.dy);
  step.dropout.apply(dy, step.t, n, step.order.direction, unit);
  MP_UNROLL
  for (int s = 0; s < Cell::kKept; s++) Access::widen(slots[s], step.dtype, in.kept[s]);
  if (!Cell::kHasC) Access::widen(h, step.dtype, in.h);
  MP_UNROLL
  for (int i = 0; i < kVec; i++) {
    float slots_of_unit[Cell::kSlots];
    MP_UNROLL
    for (int s = 0; s < Cell::kKept; s++) slots_of_unit[s] = slots[s][i];
    const CellState before{BackwardInputs<Cell, Access>::kReadsBefore ? h[i] : 0.0f,
                           Cell::kHasC ? in.c_before[i] : 0.0f};
    const CellState after{h[i], Cell::kHasC ? in.c[i] : 0.0f};
    const CellState grad{in.dh[i] + dy[i], Cell::kHasC ? in.dc[i] : 0.0f};
    const CellState part = Cell::backward(slots_of_unit, before, after, grad, step.options());
    MP_UNROLL
    for (int s = 0; s < Cell::kSlots; s++) slots[s][i] = slots_of_unit[s];
    in.dh[i] = part.h;
    in.dc[i] = part.c;
  }
  if (Cell::kHasC) store_row<Access>(step.dc, n, unit, in.dc, valid);
}

/// Runs the cell backward.
/// @param product  added to dh: gradients of the next step's gates times W_hh
template <class Cell, class Access>
MP_DEVICE void backward_units(const BackwardStep &step, int64_t n, int64_t unit, int valid,
                              BackwardInputs<Cell, Access> &in, const float (&product)[kVec],
                              AmaxTracker &watch) {
  float slots[Cell::kSlots][kVec] = {};
  MP_UNROLL
  for (int i = 0; i < kVec; i++) in.dh[i] += product[i];
  if (in.has_step) go_back<Cell, Access>(step, n, unit, valid, in, slots);
  store_row<Access>(step.dh, n, unit, in.dh, valid);
  if (!in.has_row) return;
  if (step.order.is_broken(n)) fill(slots, float_from_bits(0x7fffffffu));
  MP_UNROLL
  for (int s = 0; s < Cell::kSlots; s++) {
    const auto gradients = Access::narrow(step.dtype, slots[s]);
    Access::store(step.dtype, step.slots.base,
                  step.slots.at(n, step.slot_column(s, Cell::kGates) + unit), gradients, valid);
    Access::see(watch, step.dtype, gradients, valid);
  }
}

}  // namespace mp::MP_TARGET
