// Activations of one element; epilogues and layers share them.
#pragma once

#include "kernels/simt/fast_math.h"

namespace mp::MP_TARGET {

/// Hendrycks & Gimpel 2016, tanh form: gelu(z) = z/2 (1 + tanh(u)), u = sqrt(2/pi)(z + a z^3).
/// (1 + tanh(u)) / 2 is the logistic function of 2 u, which costs one exponential and one reciprocal
/// and loses nothing where tanh is close to -1.
struct Gelu {
  static constexpr float kSqrt2OverPi = 0.7978845608f;
  static constexpr float kCubic = 0.044715f;
  /// Beyond it the logistic function is 0 or 1 in fp32; said explicitly, for 0 x infinity is NaN.
  static constexpr float kFarOut = 10.0f;

  static MP_DEVICE float value(float z) {
    const float gelu = z * Logistic(z).value;
    return z < -kFarOut ? -0.0f : gelu;
  }
  static MP_DEVICE float derivative(float z) {
    const Logistic s(z);
    const float slope = 2.0f * kSqrt2OverPi * (1.0f + 3.0f * kCubic * z * z);
    const float derivative = s.value + z * slope * (s.rest * s.value);
    return z > kFarOut ? 1.0f : z < -kFarOut ? 0.0f : derivative;
  }

 private:
  /// 1 / (1 + exp(-2 u)), and 1 less it.
  struct Logistic {
    float value, rest;
    MP_DEVICE explicit Logistic(float z) {
      constexpr float kLog2E = 1.4426950409f;
      const float e = fast_exp2(-2.0f * kLog2E * kSqrt2OverPi * (z + kCubic * z * z * z));
      value = fast_reciprocal(1.0f + e);
      rest = e * value;
    }
  };
};

/// max(z, 0); keeps NaN.
MP_DEVICE float relu(float z) {
  return z < 0.0f ? 0.0f : z;
}

}  // namespace mp::MP_TARGET
