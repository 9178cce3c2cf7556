// Recurrent cells: one hidden unit in one step, forward and backward, as pure fp32 functions with
// equal bits on every target.  Multiply-adds are written as fmaf.
//
// mpcore/rnn.h has the equations.  backward() takes the gradients of h' and c', overwrites the
// slots with the gradients of the gates' arguments, and returns the gradients of the previous
// step's h and c, without the part through W_hh.
//
// Source: Gers et al. 2000 (LSTM), Cho et al. 2014 (GRU); derivatives by hand.
#pragma once

#include "kernels/simt/activation.h"
#include "kernels/simt/logistic.h"
#include "mpcore/rnn.h"

namespace mp::MP_TARGET {

/// State of a unit between steps, or its gradient.
struct CellState {
  float h, c;
};

MP_DEVICE float logistic_derivative(float s) {
  return s * (1.0f - s);
}
MP_DEVICE float tanh_derivative(float t) {
  return fmaf(-t, t, 1.0f);
}

/// Parameters of a cell, equal for all units.
struct CellOptions {
  float clip;    ///< bound of |c'|; NaN = none, because comparisons with NaN are false
  bool is_relu;  ///< MP_RNN_RELU, else MP_RNN_TANH; separate kernels are not faster
};

struct PlainCell {
  static constexpr int kGates = 1;
  static constexpr int kKept = 0;                        ///< slots that forward() writes
  static constexpr int kSlots = 1;                       ///< slots that backward() writes
  static constexpr bool kHasC = false, kReadsH = false;  ///< forward() reads h directly

  static MP_DEVICE CellState forward(const float (&p)[1], const float (&q)[1], CellState,
                                     float (&)[kSlots], const CellOptions &options) {
    const float sum = p[0] + q[0];
    return {options.is_relu ? relu(sum) : tanh_of(sum), 0.0f};
  }
  static MP_DEVICE CellState backward(float (&slots)[kSlots], CellState, CellState after,
                                      CellState grad, const CellOptions &options) {
    const float through_relu = after.h > 0.0f ? grad.h : 0.0f;
    slots[0] = options.is_relu ? through_relu : grad.h * tanh_derivative(after.h);
    return {0.0f, 0.0f};
  }
};

/// Slots: i, f, g, o.
struct LstmCell {
  static constexpr int kGates = 4, kKept = 4, kSlots = 4;
  static constexpr bool kHasC = true, kReadsH = false;

  static MP_DEVICE CellState forward(const float (&p)[4], const float (&q)[4], CellState before,
                                     float (&slots)[kSlots], const CellOptions &options) {
    const float i = logistic(p[0] + q[0]), f = logistic(p[1] + q[1]);
    const float g = tanh_of(p[2] + q[2]), o = logistic(p[3] + q[3]);
    float c = fmaf(f, before.c, i * g);
    const float clip = options.clip;
    c = c > clip ? clip : c < -clip ? -clip : c;
    slots[0] = i, slots[1] = f, slots[2] = g, slots[3] = o;
    return {o * tanh_of(c), c};
  }
  static MP_DEVICE CellState backward(float (&slots)[kSlots], CellState before, CellState after,
                                      CellState grad, const CellOptions &options) {
    const float i = slots[0], f = slots[1], g = slots[2], o = slots[3];
    const float t = tanh_of(after.c);
    const float through_c = fmaf(grad.h * o, tanh_derivative(t), grad.c);
    const float clip = options.clip;
    const float dc = after.c >= clip || after.c <= -clip ? 0.0f : through_c;
    slots[0] = dc * g * logistic_derivative(i);
    slots[1] = dc * before.c * logistic_derivative(f);
    slots[2] = dc * i * tanh_derivative(g);
    slots[3] = grad.h * t * logistic_derivative(o);
    return {0.0f, dc * f};
  }
};

/// Returns h' = (1 - z) n + z h; exactly h for z = 1 and n for z = 0.
MP_DEVICE float interpolated(float n, float h, float z) {
  return fmaf(z, h, (1.0f - z) * n);
}

/// Slots: r, z, n, and q_n, which backward() replaces by dn r.
struct GruCell {
  static constexpr int kGates = 3, kKept = 4, kSlots = 4;
  static constexpr bool kHasC = false, kReadsH = true;

  static MP_DEVICE CellState forward(const float (&p)[3], const float (&q)[3], CellState before,
                                     float (&slots)[kSlots], const CellOptions &) {
    const float r = logistic(p[0] + q[0]), z = logistic(p[1] + q[1]);
    const float n = tanh_of(fmaf(r, q[2], p[2]));
    slots[0] = r, slots[1] = z, slots[2] = n, slots[3] = q[2];
    return {interpolated(n, before.h, z), 0.0f};
  }
  static MP_DEVICE CellState backward(float (&slots)[kSlots], CellState before, CellState,
                                      CellState grad, const CellOptions &) {
    const float r = slots[0], z = slots[1], n = slots[2], q = slots[3];
    const float dn = grad.h * (1.0f - z) * tanh_derivative(n);
    slots[0] = dn * q * logistic_derivative(r);
    slots[1] = grad.h * (before.h - n) * logistic_derivative(z);
    slots[2] = dn;
    slots[3] = dn * r;
    return {grad.h * z, 0.0f};
  }
};

/// GRU with MP_RNN_FLAG_RESET_FIRST.  Slots: r, z, n and r h.  reset() computes r h, and q[2] is
/// its product.  backward() leaves r to reset_backward(), which needs the gradient of r h.
struct ResetFirstCell {
  static constexpr int kGates = 3, kKept = 4, kSlots = 4;
  static constexpr bool kHasC = false, kReadsH = true;

  static MP_DEVICE float reset(float p, float q, float h) { return logistic(p + q) * h; }
  static MP_DEVICE CellState forward(const float (&p)[3], const float (&q)[3], CellState before,
                                     float (&slots)[kSlots], const CellOptions &) {
    const float z = logistic(p[1] + q[1]), n = tanh_of(p[2] + q[2]);
    slots[0] = logistic(p[0] + q[0]), slots[1] = z, slots[2] = n;
    slots[3] = slots[0] * before.h;
    return {interpolated(n, before.h, z), 0.0f};
  }
  static MP_DEVICE CellState backward(float (&slots)[kSlots], CellState before, CellState,
                                      CellState grad, const CellOptions &) {
    const float z = slots[1], n = slots[2];
    slots[1] = grad.h * (before.h - n) * logistic_derivative(z);
    slots[2] = grad.h * (1.0f - z) * tanh_derivative(n);
    return {grad.h * z, 0.0f};
  }
  /// Adds the part of dh through r h, whose gradient is d_reset; replaces r by its gradient.
  static MP_DEVICE void reset_backward(float &r, float &dh, float h, float d_reset) {
    dh = fmaf(d_reset, r, dh);
    r = d_reset * h * logistic_derivative(r);
  }
};

/// Calls f with a cell of the type of `cell` and `flags`.
template <class F>
void with_cell(mp_rnn_cell_t cell, uint32_t flags, const F &f) {
  switch (cell) {
    case MP_RNN_TANH:
    case MP_RNN_RELU:
      return f(PlainCell{});
    case MP_RNN_LSTM:
      return f(LstmCell{});
    default:
      return flags & MP_RNN_FLAG_RESET_FIRST ? f(ResetFirstCell{}) : f(GruCell{});
  }
}

}  // namespace mp::MP_TARGET
