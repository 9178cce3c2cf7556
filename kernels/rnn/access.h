// Loads and stores of kVec adjacent units, for the types and alignments that a kernel supports.
// Vectors of the layer's type stay as loaded until they are used: a conversion would wait for them.
#pragma once

#include "kernels/rnn/step.h"
#include "kernels/simt/packed.h"
#include "kernels/tensors/watch.h"

namespace mp::MP_TARGET {

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
    MP_UNROLL
    for (int i = 0; i < kVec; i++) x[i] = v.x[i];
  }
  /// Returns x to be stored; the store rounds.
  static MP_DEVICE Vector narrow(mp_dtype_t, const float (&x)[kVec]) {
    Vector v;
    MP_UNROLL
    for (int i = 0; i < kVec; i++) v.x[i] = x[i];
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
    with_half_type(dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      mp::MP_TARGET::widen(x, Packed<T>{{v.words[0], v.words[1], v.words[2], v.words[3]}});
    });
  }
  static MP_DEVICE Vector narrow(mp_dtype_t dtype, const float (&x)[kVec]) {
    return with_half_type(dtype, [&](auto type) {
      const auto rounded = packed<typename decltype(type)::type>(x);
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

}  // namespace mp::MP_TARGET
