// Activation functions and their derivatives for one element, shared by epilogues and layers.
#pragma once

#include "kernels/simt/fast_math.h"
#include "kernels/simt/logistic.h"
#include "mpcore/gemm.h"

namespace mp::MP_TARGET {

/// GELU, tanh approximation: gelu(z) = z/2 (1 + tanh(u)), u = sqrt(2/pi) (z + a z^3).
/// (1 + tanh(u)) / 2 is computed as the logistic function of 2 u: one exponential, one reciprocal
/// and no cancellation where tanh is close to -1.  Source: Hendrycks & Gimpel 2016.
struct Gelu {
  static constexpr float kSqrt2OverPi = 0.7978845608f;
  static constexpr float kCubic = 0.044715f;
  /// Limit of |z|, beyond which the logistic function is 0 or 1 in fp32; avoids 0 x infinity.
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
  /// 1 / (1 + exp(-2 u)), and 1 minus it.
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

/// max(z, 0); propagates NaN.
MP_DEVICE float relu(float z) {
  return z < 0.0f ? 0.0f : z;
}

/// 1 / (1 + e^-z): one exponential and one reciprocal.
struct Sigmoid {
  static MP_DEVICE float value(float z) { return fast_reciprocal(1.0f + fast_exp(-z)); }
  /// s (1 - s) = e^-|z| / (1 + e^-|z|)^2, without cancellation or overflow.
  static MP_DEVICE float derivative(float z) {
    const float e = fast_exp(-fabsf(z)), reciprocal = fast_reciprocal(1.0f + e);
    return e * reciprocal * reciprocal;
  }
};

struct Tanh {
  static MP_DEVICE float value(float z) {
    const float a = fabsf(z), e = fast_exp(-2.0f * a);
    const float far = (1.0f - e) * fast_reciprocal(1.0f + e);
    return copysignf(a < kTanhNear ? tanh_near(a) : far, z);
  }
  /// 1 - tanh(z)^2 = 4 s(2 z) (1 - s(2 z))
  static MP_DEVICE float derivative(float z) { return 4.0f * Sigmoid::derivative(2.0f * z); }
};

/// GELU, exact form: gelu(z) = z/2 (1 + erf(z / sqrt 2)), z times the normal CDF.
/// Its lower tail is computed directly, so negative results keep their relative accuracy.  Source:
/// Hendrycks & Gimpel 2016.
struct GeluErf {
  /// Limit of |z|, beyond which the normal CDF is 0 or 1 in fp32; avoids 0 x infinity.
  static constexpr float kFarOut = 14.5f;

  static MP_DEVICE float value(float z) {
    const NormalTail tail(fabsf(z));
    // z is multiplied by the ratio first: the tail itself may be subnormal.
    const float below = (z * tail.ratio) * tail.power, above = z * (1.0f - tail.value());
    return z < -kFarOut ? -0.0f : z < 0.0f ? below : above;
  }
  static MP_DEVICE float derivative(float z) {
    constexpr float kOneOverSqrt2Pi = 0.3989422804f;
    const NormalTail tail(fabsf(z));
    const float below = z < 0.0f ? tail.value() : 1.0f - tail.value();
    const float derivative = fmaf(z, kOneOverSqrt2Pi * tail.power, below);
    return z > kFarOut ? 1.0f : z < -kFarOut ? 0.0f : derivative;
  }
};

/// SiLU, z / (1 + e^-z).  Source: swish in Ramachandran, Zoph & Le, Searching for Activation
/// Functions, 2017.
struct Silu {
  static constexpr float kFarOut = 110.0f;  ///< |z|, like GeluErf::kFarOut

  static MP_DEVICE float value(float z) {
    const float silu = z * Parts(z).logistic;
    return z < -kFarOut ? -0.0f : silu;
  }
  /// s + z s (1 - s)
  static MP_DEVICE float derivative(float z) {
    const Parts parts(z);
    const float derivative = fmaf(z, parts.slope, parts.logistic);
    return z > kFarOut ? 1.0f : z < -kFarOut ? 0.0f : derivative;
  }

 private:
  /// s = 1 / (1 + e^-z) and s (1 - s), from one exponential that does not overflow.
  struct Parts {
    float logistic, slope;
    MP_DEVICE explicit Parts(float z) {
      const float e = fast_exp(-fabsf(z)), reciprocal = fast_reciprocal(1.0f + e);
      const float rest = e * reciprocal;
      logistic = z < 0.0f ? rest : reciprocal;
      slope = rest * reciprocal;
    }
  };
};

/// z[i] = f(z[i]); no effect if f is MP_ACT_NONE or one of the D* kinds.
template <int kRun>
MP_DEVICE void activate(mp_activation_t f, float (&z)[kRun]) {
  const auto each = [&](auto function) {
    MP_UNROLL
    for (float &x : z) x = function(x);
  };
  switch (f) {
    case MP_ACT_RELU:
      return each([](float x) { return relu(x); });
    case MP_ACT_GELU:
      return each(Gelu::value);
    case MP_ACT_SIGMOID:
      return each(Sigmoid::value);
    case MP_ACT_TANH:
      return each(Tanh::value);
    case MP_ACT_SILU:
      return each(Silu::value);
    case MP_ACT_GELU_ERF:
      return each(GeluErf::value);
    default:
      return;
  }
}

/// z[i] *= f'(saved[i]); no effect unless f is one of the D* kinds.
template <int kRun>
MP_DEVICE void multiply_by_derivative(mp_activation_t f, const float (&saved)[kRun],
                                      float (&z)[kRun]) {
  const auto each = [&](auto derivative) {
    MP_UNROLL
    for (int i = 0; i < kRun; i++) z[i] *= derivative(saved[i]);
  };
  switch (f) {
    case MP_ACT_DRELU:  // not a product: 0 x infinity is NaN
      MP_UNROLL
      for (int i = 0; i < kRun; i++) z[i] = saved[i] > 0.0f ? z[i] : 0.0f;
      return;
    case MP_ACT_DGELU:
      return each(Gelu::derivative);
    case MP_ACT_DSIGMOID:
      return each(Sigmoid::derivative);
    case MP_ACT_DTANH:
      return each(Tanh::derivative);
    case MP_ACT_DSILU:
      return each(Silu::derivative);
    case MP_ACT_DGELU_ERF:
      return each(GeluErf::derivative);
    default:
      return;
  }
}

}  // namespace mp::MP_TARGET
