// Shared code of the kernels of a recurrent network: lengths of sequences, dropout masks, rows of
// matrices.
#pragma once

#include "kernels/rnn/rnn_problem.h"
#include "kernels/simt/dropout.h"
#include "kernels/tensors/row_vectors.h"

namespace mp::MP_TARGET {

/// Order and number of the steps of each sequence, in one direction.
struct Walk {
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
struct Rows {
  void *base;
  int64_t ld;

  MP_HD int64_t at(int64_t row, int64_t col) const { return row * ld + col; }
};

/// Loads up to kVec elements, or zeros if the matrix is absent.
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

/// Threads per block of the elementwise kernels.
constexpr int kRnnThreads = kRowRunThreads;

}  // namespace mp::MP_TARGET
