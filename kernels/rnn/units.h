// Cell of kVec adjacent units of a sequence in one step, with its loads and stores.  Shared by all
// kernels, whichever computes the product with W_hh.
//
// Inputs are loaded and used by separate functions: fused steps issue the loads before the product,
// which hides their latency.
#pragma once

#include "kernels/rnn/step.h"
#include "kernels/simt/packed.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- access

// Loads and stores of kVec adjacent units, for the types and alignments that a kernel supports.
// Vectors of the layer's type stay as loaded until they are used: a conversion would wait for them.

/// Any type and alignment.
struct AnyAccess {
  /// Vector of the layer's type.
  struct Vector {
    float x[kVec];
  };

  static MP_DEVICE void load(Vector &v, mp_dtype_t dtype, const void *base, int64_t index,
                             int valid) {
    load_vector(v.x, dtype, base, index, valid);
  }
  static MP_DEVICE void load(float (&x)[kVec], const float *p, int valid) {
    load_vector(x, p, valid);
  }
  static MP_DEVICE void store(mp_dtype_t dtype, void *base, int64_t index, const Vector &v,
                              int valid) {
    store_vector(dtype, base, index, v.x, valid);
  }
  static MP_DEVICE void store(float *p, const float (&x)[kVec], int valid) {
    store_vector(p, x, valid);
  }

  static MP_DEVICE void widen(float (&x)[kVec], mp_dtype_t, const Vector &v) {
    unroll<kVec>([&](int i) { x[i] = v.x[i]; });
  }
  /// Returns x to be stored; the store rounds.
  static MP_DEVICE Vector narrow(mp_dtype_t, const float (&x)[kVec]) {
    Vector v;
    unroll<kVec>([&](int i) { v.x[i] = x[i]; });
    return v;
  }
  /// Updates the maximum with a stored vector.
  static MP_DEVICE void see(AmaxTracker &watch, mp_dtype_t dtype, const Vector &v, int valid) {
    watch.see(dtype, v.x, valid);
  }
};

/// FP16 or BF16.
/// @tparam kIsWhole  true: only full vectors, at 16-byte aligned addresses
template <bool kIsWhole>
struct HalfAccess {
  using Vector = Packed<half>;  ///< elements of either type
  using Words = Pack<uint32_t, 4>;

  static MP_DEVICE void load(Vector &v, mp_dtype_t, const void *base, int64_t index, int valid) {
    v = load_packed<kIsWhole>(static_cast<const half *>(base) + index, valid);
  }
  static MP_DEVICE void load(float (&x)[kVec], const float *p, int valid) {
    if constexpr (!kIsWhole) return load_vector(x, p, valid);
    const Quad *const quads = reinterpret_cast<const Quad *>(p);
    const Quad loaded[2] = {quads[0], quads[1]};
    mp::MP_TARGET::widen(x, loaded);
  }
  static MP_DEVICE void store(mp_dtype_t, void *base, int64_t index, const Vector &v, int valid) {
    half *const p = static_cast<half *>(base) + index;
    if (kIsWhole || (valid == kVec && is_aligned_16(p)))
      store_pack(reinterpret_cast<uint32_t *>(p), __builtin_bit_cast(Words, v));
    else
      v.store_elements(p, valid);
  }
  static MP_DEVICE void store(float *p, const float (&x)[kVec], int valid) {
    if constexpr (!kIsWhole) return store_vector(p, x, valid);
    Quad quads[2];
    mp::MP_TARGET::narrow(quads, x);
    store_pack(p, quads[0]);
    store_pack(p + kQuad, quads[1]);
  }

  static MP_DEVICE void widen(float (&x)[kVec], mp_dtype_t dtype, const Vector &v) {
    with_half_type(dtype, [&]<class T>(std::type_identity<T>) {
      mp::MP_TARGET::widen(x, Packed<T>{{v.words[0], v.words[1], v.words[2], v.words[3]}});
    });
  }
  static MP_DEVICE Vector narrow(mp_dtype_t dtype, const float (&x)[kVec]) {
    return with_half_type(dtype, [&]<class T>(std::type_identity<T>) {
      const auto rounded = packed<T>(x);
      return Vector{{rounded.words[0], rounded.words[1], rounded.words[2], rounded.words[3]}};
    });
  }
  static MP_DEVICE void see(AmaxTracker &watch, mp_dtype_t dtype, const Vector &v, int valid) {
    if (!watch.is_enabled()) return;
    float x[kVec];
    widen(x, dtype, v);
    watch.see<float>(x, kIsWhole ? kVec : valid);
  }
};

// ---------------------------------------------------------------------------- rows of matrices

template <class Access>
MP_DEVICE void load_row(float (&x)[kVec], const RowMatrix &rows, int64_t row, int64_t col,
                        int valid) {
  Access::load(x, static_cast<const float *>(rows.base) + rows.at(row, col), valid);
}
template <class Access>
MP_DEVICE void store_row(const RowMatrix &rows, int64_t row, int64_t col, const float (&x)[kVec],
                         int valid) {
  Access::store(static_cast<float *>(rows.base) + rows.at(row, col), x, valid);
}
template <class Access>
MP_DEVICE void store_if_there(mp_dtype_t dtype, const RowMatrix &rows, int64_t row, int64_t col,
                              const typename Access::Vector &v, int valid) {
  if (rows.base != nullptr) Access::store(dtype, rows.base, rows.at(row, col), v, valid);
}

template <int kRows>
MP_DEVICE void fill(float (&x)[kRows][kVec], float value) {
  unroll<kRows, kVec>([&](int r, int i) { x[r][i] = value; });
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
    unroll<kGates>([&](int g) {
      const int64_t row = g * step.hidden + unit;
      if (!skips_input) load_row<Access>(p[g], step.p, n, row, valid);
      if (step.b_ih != nullptr) Access::load(b_ih[g], step.b_ih + row, valid);
      if (step.b_hh != nullptr) Access::load(b_hh[g], step.b_hh + row, valid);
    });
  }

  /// Adds the biases to p and q.
  MP_DEVICE void finish(const ForwardStep &step, float (&q)[kGates][kVec]) {
    if (step.x.base != nullptr) {
      unroll<kGates>([&](int g) { Access::widen(p[g], step.dtype, x); });
    }
    unroll<kGates>([&](int g) {
      if (step.b_ih != nullptr) add(p[g], b_ih[g]);
      if (step.b_hh != nullptr) add(q[g], b_hh[g]);
    });
  }

 private:
  static MP_DEVICE void add(float (&a)[kVec], const float (&b)[kVec]) {
    unroll<kVec>([&](int i) { a[i] += b[i]; });
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
    unroll<kVec>([&](int i) {
      float p_of_unit[Cell::kGates], q_of_unit[Cell::kGates], slots_of_unit[Cell::kSlots];
      unroll<Cell::kGates>([&](int g) { p_of_unit[g] = in.gates.p[g][i], q_of_unit[g] = q[g][i]; });
      const CellState before{Cell::kReadsH ? h[i] : 0.0f, Cell::kHasC ? in.c[i] : 0.0f};
      const CellState after = Cell::forward(p_of_unit, q_of_unit, before, slots_of_unit, options);
      unroll<Cell::kKept>([&](int s) { slots[s][i] = slots_of_unit[s]; });
      h[i] = after.h;
      c[i] = after.c;
    });
  };
  const CellOptions options = step.options();
  if (Cell::kGates == 1 && options.is_relu)  // constant in the loop, which then has no branches
    run({options.clip, true});
  else
    run({options.clip, false});
  if (step.slots.base == nullptr) return;
  unroll<Cell::kKept>([&](int s) {
    Access::store(step.dtype, step.slots.base,
                  step.slots.at(n, step.slot_column(s, Cell::kGates) + unit),
                  Access::narrow(step.dtype, slots[s]), valid);
  });
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
    unroll<Cell::kKept>([&](int s) {
      Access::load(kept[s], step.dtype, step.slots.base,
                   step.slots.at(n, step.slot_column(s, Cell::kGates) + unit), valid);
    });
    if (Cell::kHasC) {
      load_row<Access>(dc, step.dc, n, unit, valid);
      load_row<Access>(c, step.saved_c, n, unit, valid);
      const RowMatrix &before = step.is_first(n) ? step.c0 : step.c_before;
      unroll<kVec>([&](int i) { c_before[i] = 0.0f; });
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
  unroll<Cell::kKept>([&](int s) { Access::widen(slots[s], step.dtype, in.kept[s]); });
  if (!Cell::kHasC) Access::widen(h, step.dtype, in.h);
  unroll<kVec>([&](int i) {
    float slots_of_unit[Cell::kSlots];
    unroll<Cell::kKept>([&](int s) { slots_of_unit[s] = slots[s][i]; });
    const CellState before{BackwardInputs<Cell, Access>::kReadsBefore ? h[i] : 0.0f,
                           Cell::kHasC ? in.c_before[i] : 0.0f};
    const CellState after{h[i], Cell::kHasC ? in.c[i] : 0.0f};
    const CellState grad{in.dh[i] + dy[i], Cell::kHasC ? in.dc[i] : 0.0f};
    const CellState part = Cell::backward(slots_of_unit, before, after, grad, step.options());
    unroll<Cell::kSlots>([&](int s) { slots[s][i] = slots_of_unit[s]; });
    in.dh[i] = part.h;
    in.dc[i] = part.c;
  });
  if (Cell::kHasC) store_row<Access>(step.dc, n, unit, in.dc, valid);
}

/// Runs the cell backward.
/// @param product  added to dh: gradients of the next step's gates times W_hh
template <class Cell, class Access>
MP_DEVICE void backward_units(const BackwardStep &step, int64_t n, int64_t unit, int valid,
                              BackwardInputs<Cell, Access> &in, const float (&product)[kVec],
                              AmaxTracker &watch) {
  float slots[Cell::kSlots][kVec] = {};
  unroll<kVec>([&](int i) { in.dh[i] += product[i]; });
  if (in.has_step) go_back<Cell, Access>(step, n, unit, valid, in, slots);
  store_row<Access>(step.dh, n, unit, in.dh, valid);
  if (!in.has_row) return;
  if (step.order.is_broken(n)) fill(slots, float_from_bits(0x7fffffffu));
  unroll<Cell::kSlots>([&](int s) {
    const auto gradients = Access::narrow(step.dtype, slots[s]);
    Access::store(step.dtype, step.slots.base,
                  step.slots.at(n, step.slot_column(s, Cell::kGates) + unit), gradients, valid);
    Access::see(watch, step.dtype, gradients, valid);
  });
}

}  // namespace mp::MP_TARGET
