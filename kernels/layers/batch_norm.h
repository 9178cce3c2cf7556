// Common parts of the batch normalization passes: loads, stores and the formula.
#pragma once

#include "kernels/layers/layer_args.h"
#include "kernels/simt/activation.h"
#include "kernels/simt/columns.h"

namespace mp::MP_TARGET {

/// Arguments of a pass over x.
struct PassArgs {
  BatchNormArgs call;
  ColumnPartition partition;

  /// Partial results of a chunk in the workspace, two per channel.
  MP_DEVICE float &first(int64_t chunk, int64_t channel) const {
    return call.workspace[chunk * call.desc.channels + channel];
  }
  MP_DEVICE float &second(int64_t chunk, int64_t channel) const {
    return first(partition.chunks + chunk, channel);
  }
};

/// Sums over rows, from which the gradients of beta and gamma derive.
template <class Real>
struct GradientSums {
  Real beta, gamma;  ///< sums of dy, and of dy times the normalized or centered x

  MP_DEVICE GradientSums operator+(const GradientSums &b) const {
    return {beta + b.beta, gamma + b.gamma};
  }
};

/// Returns the partition of a pass without sums: parts are small, but large enough to hide the
/// loads of per-channel values before the first row.
inline ColumnPartition elementwise_partition(const mp_batchnorm_desc_t &desc) {
  constexpr int64_t kRowsPerThread = 16;
  ColumnPartition partition(desc.rows, desc.channels);
  partition.rows_per_chunk = ColumnPartition::kThreads / partition.lanes * kRowsPerThread;
  partition.chunks = ceil_div(desc.rows, partition.rows_per_chunk);
  return partition;
}

/// Calls f(type, whole) once for all rows of a part: branches between rows would serialize their
/// loads.  `whole`: all kVec columns are valid, and every row of the matrices begins aligned.
template <class F, class... Bases>
MP_DEVICE void with_rows(const mp_batchnorm_desc_t &desc, const RowsOfThread &rows, const F &f,
                         const Bases *...bases) {
  const bool whole =
      rows.valid == kVec && desc.channels % kVec == 0 && (... && is_aligned_16(bases));
  with_type(desc.dtype, [&](auto type) {
    if (whole)
      f(type, std::true_type{});
    else
      f(type, std::false_type{});
  });
}

/// Loads x[r], the channels of row `row` + r * rows.stride, for rows below `end`.
template <class T, bool kWhole, int kRows>
MP_DEVICE void load_rows(float (&x)[kRows][kVec], const mp_batchnorm_desc_t &desc, const void *base,
                         const RowsOfThread &rows, int64_t row, int64_t end) {
  const T *const first = static_cast<const T *>(base) + row * desc.channels + rows.column;
  const int64_t step = rows.stride * desc.channels, left = end - row;
  if constexpr (kWhole)
    load_whole_rows(x, first, step, rows.stride, left);
  else
    load_rows(x, first, step, rows.stride, left, rows.valid);
}
template <class T, int kRows>
MP_DEVICE void store_rows(const float (&x)[kRows][kVec], const mp_batchnorm_desc_t &desc,
                          void *base, const RowsOfThread &rows, int64_t row, int64_t end) {
  T *const first = static_cast<T *>(base) + row * desc.channels + rows.column;
  unroll<kRows>([&](int r) {
    if (row + r * rows.stride < end)
      store_vector(first + r * rows.stride * desc.channels, x[r], rows.valid);
  });
}

/// Loads one float per channel of the thread.
MP_DEVICE void load_channels(float (&x)[kVec], const float *base, const RowsOfThread &rows) {
  load_vector(x, base + rows.column, rows.valid);
}

/// Loads an optional array, or sets x to `absent`.
MP_DEVICE void load_channels(float (&x)[kVec], const float *base, const RowsOfThread &rows,
                             float absent) {
  MP_UNROLL
  for (float &value : x) value = absent;
  if (base != nullptr) load_channels(x, base, rows);
}

/// Returns 1 / sqrt(var + epsilon), or NaN for an infinite variance, which 0 would hide.
MP_DEVICE float inverse_std(float var, float epsilon) {
  return is_nonfinite(var) ? float_from_bits(0x7fffffffu) : 1.0f / sqrtf(var + epsilon);
}

/// Normalization up to the activation.  Forward and backward must compute identical bits, because
/// the gradient of ReLU depends on the sign.
struct Normalization {
  float mean[kVec], factor[kVec], shift[kVec];

  /// @param has_variance  saved_inv_std contains variances
  /// @param is_affine     gamma and beta are present, which saves registers
  MP_DEVICE Normalization(const BatchNormArgs &call, const RowsOfThread &rows,
                          bool has_variance = false, bool is_affine = false) {
    float inv_std[kVec];
    load_channels(mean, call.saved_mean, rows);
    load_channels(inv_std, call.saved_inv_std, rows);
    if (has_variance)
      unroll<kVec>([&](int i) { inv_std[i] = inverse_std(inv_std[i], call.desc.epsilon); });
    if (is_affine) {
      load_channels(factor, call.gamma, rows);
      load_channels(shift, call.beta, rows);
    } else {
      load_channels(factor, call.gamma, rows, 1.0f);
      load_channels(shift, call.beta, rows, 0.0f);
    }
    unroll<kVec>([&](int i) { factor[i] *= inv_std[i]; });
  }
  MP_DEVICE float centered(float x, int i) const { return x - mean[i]; }
  MP_DEVICE float z(float x, int i) const { return fmaf(centered(x, i), factor[i], shift[i]); }
};

}  // namespace mp::MP_TARGET
