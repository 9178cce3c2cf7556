// What happens to the fp32 accumulators before they are stored; every GEMM kernel ends here.
//
//      z = alpha * *scale * acc + beta * C + bias[col]
//      aux = z                     (forward activations, if aux != NULL)
//      y = activation(z)           (or z * activation'(aux) for the D* kinds)
//      D = round(y),  amax = max(amax, |D|),  found_inf |= !isfinite(D)
//
// dbias, the column sums of D, is a pass of its own (column_sum.cu).  With split-k the main loop
// stores raw partial sums, and split_k.cu adds them in order and comes here.
#pragma once

#include "kernels/gemm/operand.h"
#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Hendrycks & Gimpel 2016, tanh form: gelu(z) = z/2 (1 + tanh(u)), u = sqrt(2/pi)(z + a z^3).
struct Gelu {
  static constexpr float kSqrt2OverPi = 0.7978845608f;
  static constexpr float kCubic = 0.044715f;

  static MP_DEVICE float value(float z) {
    // Far out tanh is +-1; said explicitly, so that z = +-infinity gives infinity and 0, not NaN.
    if (z > 10.0f) return z;
    if (z < -10.0f) return -0.0f;
    return 0.5f * z * (1.0f + tanhf(kSqrt2OverPi * (z + kCubic * z * z * z)));
  }
  static MP_DEVICE float derivative(float z) {
    if (z > 10.0f) return 1.0f;
    if (z < -10.0f) return 0.0f;
    const float t = tanhf(kSqrt2OverPi * (z + kCubic * z * z * z));
    const float du = kSqrt2OverPi * (1.0f + 3.0f * kCubic * z * z);
    return 0.5f * (1.0f + t) + 0.5f * z * (1.0f - t * t) * du;
  }
};

/// Applies the epilogue to runs of 8 columns and keeps this thread's amax of what it stored.
class EpilogueWriter {
 public:
  MP_DEVICE EpilogueWriter(const GemmProblem &problem, int64_t item)
      : p_(problem),
        c_(item_address(problem.c, problem.dtype_cd, item)),
        d_(const_cast<void *>(item_address(problem.d, problem.dtype_cd, item))),
        aux_offset_(item * problem.epilogue.stride_aux) {
    // No product at all where alpha is exact as it is: scale may be absent, not just 1.
    alpha_ =
        problem.epilogue.scale == nullptr ? problem.alpha : problem.alpha * *problem.epilogue.scale;
  }

  /// D[row][col .. col + valid) from the accumulators.
  MP_DEVICE void write(int64_t row, int64_t col, float (&acc)[kVec], int valid) {
    const Epilogue &e = p_.epilogue;
    MP_UNROLL
    for (int i = 0; i < kVec; i++) acc[i] *= alpha_;
    if (p_.beta != 0.0f) add_beta_c(row, col, acc, valid);
    if (e.bias != nullptr) add_bias(col, acc, valid);
    activate(row, col, acc, valid);
    store8(p_.dtype_cd, d_, row * p_.d.ld + col, acc, valid);
    if (e.amax != nullptr || e.found_inf != nullptr) measure(acc, valid);
  }

  /// Called once by every lane of the warp when it has written all it has to.
  MP_DEVICE void finish() {
    const Epilogue &e = p_.epilogue;
    if (e.amax == nullptr && e.found_inf == nullptr) return;
    const uint32_t bits = warp_reduce<Max>(amax_bits_);
    if (lane_index() != 0) return;
    if (e.amax != nullptr) atomic_max(reinterpret_cast<uint32_t *>(e.amax), bits);
    if (e.found_inf != nullptr && bits >= kInfinityBits) raise_flag(e.found_inf);
  }

 private:
  MP_DEVICE void add_beta_c(int64_t row, int64_t col, float (&z)[kVec], int valid) const {
    float c[kVec];
    load8(c, p_.dtype_cd, c_, row * p_.c.ld + col, valid);
    MP_UNROLL
    for (int i = 0; i < kVec; i++) z[i] += p_.beta * c[i];
  }

  MP_DEVICE void add_bias(int64_t col, float (&z)[kVec], int valid) const {
    float bias[kVec];
    load8(bias, p_.epilogue.bias_dtype, p_.epilogue.bias, col, valid);
    MP_UNROLL
    for (int i = 0; i < kVec; i++) z[i] += bias[i];
  }

  MP_DEVICE void activate(int64_t row, int64_t col, float (&z)[kVec], int valid) const {
    const Epilogue &e = p_.epilogue;
    const int64_t at = aux_offset_ + row * e.ld_aux + col;
    float saved[kVec];
    switch (e.activation) {
      case MP_ACT_DRELU:
        load8(saved, p_.dtype_cd, e.aux, at, valid);
        MP_UNROLL
        for (int i = 0; i < kVec; i++) z[i] = saved[i] > 0.0f ? z[i] : 0.0f;
        return;
      case MP_ACT_DGELU:
        load8(saved, p_.dtype_cd, e.aux, at, valid);
        MP_UNROLL
        for (int i = 0; i < kVec; i++) z[i] *= Gelu::derivative(saved[i]);
        return;
      default:
        break;
    }
    if (e.aux != nullptr) store8(p_.dtype_cd, e.aux, at, z, valid);
    if (e.activation == MP_ACT_RELU) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) z[i] = z[i] < 0.0f ? 0.0f : z[i];  // keeps NaN
    } else if (e.activation == MP_ACT_GELU) {
      MP_UNROLL
      for (int i = 0; i < kVec; i++) z[i] = Gelu::value(z[i]);
    }
  }

  MP_DEVICE void measure(const float (&y)[kVec], int valid) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) {
      const uint32_t bits = magnitude_bits(rounded_to(p_.dtype_cd, y[i]));
      if (i < valid) amax_bits_ = max_of(amax_bits_, bits);
    }
  }

  const GemmProblem &p_;
  const void *c_;
  void *d_;
  int64_t aux_offset_;
  float alpha_;
  uint32_t amax_bits_ = 0;
};

}  // namespace mp::MP_TARGET
