// What the kernels of a recurrent network share: which steps a sequence has, and what comes before each;
// the masks of dropout; rows in memory.
#pragma once

#include "kernels/rnn/problem.h"
#include "kernels/simt/dropout.h"
#include "kernels/tensors/row_vectors.h"

namespace mp::MP_TARGET {

/// One direction through the steps of all sequences.
struct Walk {
  const int32_t *lengths;  ///< NULL: all have every step, or the step counts its rows (packed)
  int32_t timesteps;
  int32_t direction;

  /// A length that is none: the sequence is NaN, so that the mistake shows.
  MP_DEVICE bool is_broken(int64_t n) const {
    return lengths != nullptr && (lengths[n] < 0 || lengths[n] > timesteps);
  }
  MP_DEVICE int32_t length(int64_t n) const {
    return lengths == nullptr || is_broken(n) ? timesteps : lengths[n];
  }
  MP_DEVICE bool has(int64_t n, int32_t t) const { return t < length(n); }
  /// Before that step of that sequence comes h_0.
  MP_DEVICE bool is_first(int64_t n, int32_t t) const {
    return direction == 0 ? t == 0 : t + 1 >= length(n);
  }
};

/// A matrix of which the type is known elsewhere; base = NULL: there is none.
struct Rows {
  void *base;
  int64_t ld;

  /// The index of an element.
  MP_HD int64_t at(int64_t row, int64_t col) const { return row * ld + col; }
};

/// x = up to kVec elements, or zeros where there is no matrix.
MP_DEVICE void load_or_zero(float (&x)[kVec], mp_dtype_t dtype, const Rows &rows, int64_t row,
                            int64_t col, int valid) {
  if (rows.base != nullptr) return load_vector(x, dtype, rows.base, rows.at(row, col), valid);
  MP_UNROLL
  for (int i = 0; i < kVec; i++) x[i] = 0.0f;
}
MP_DEVICE void store_if_there(mp_dtype_t dtype, const Rows &rows, int64_t row, int64_t col,
                              const float (&x)[kVec], int valid) {
  if (rows.base != nullptr) store_vector(dtype, rows.base, rows.at(row, col), x, valid);
}

/// The mask of the elements between two layers, which every pass makes anew: from the seed, the offset, the
/// layer, and where the element is, without regard to how many steps there are.
struct Dropout {
  float keep_factor;   ///< 1 / (1 - p); 0: nothing is dropped
  uint32_t threshold;  ///< random words below it drop their element
  uint32_t layer;      ///< which reads the elements
  uint64_t seed;
  const uint64_t *offset;
  int64_t batch, directions, quads_per_row;

  /// x *= mask, of the units [col, col + kVec) of one direction; col is a multiple of 4.
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

/// Threads of the elementwise kernels.
constexpr int kRnnThreads = kRowRunThreads;

}  // namespace mp::MP_TARGET
