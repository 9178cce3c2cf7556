// Activations of one element; epilogues and layers share them.
#pragma once

#include "kernels/simt/simt.h"

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

/// max(z, 0); keeps NaN.
MP_DEVICE float relu(float z) {
  return z < 0.0f ? 0.0f : z;
}

}  // namespace mp::MP_TARGET
