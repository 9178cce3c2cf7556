// Activations of one element; epilogues and layers share them.
#pragma once

#include "kernels/simt/fast_math.h"
#include "kernels/simt/logistic.h"
#include "mpcore/gemm.h"

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

/// 1 / (1 + e^-z), with one exponential and one reciprocal, as the others here.
struct Sigmoid {
  static MP_DEVICE float value(float z) { return fast_reciprocal(1.0f + fast_exp(-z)); }
  /// s (1 - s) = e^-|z| / (1 + e^-|z|)^2, in which nothing cancels or overflows.
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

/// Hendrycks & Gimpel 2016: gelu(z) = z / 2 (1 + erf(z / sqrt 2)), z times the normal distribution,
/// which in its tail is not 1 less something: negative results keep their relative accuracy.
struct GeluErf {
  /// Past it the distribution is 0 or 1 in fp32; compared explicitly, for 0 x infinity is NaN.
  static constexpr float kFarOut = 14.5f;

  static MP_DEVICE float value(float z) {
    const NormalTail tail(fabsf(z));
    // The order matters: the tail alone may be subnormal.
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

/// z / (1 + e^-z), which is swish of Ramachandran, Zoph & Le, Searching for Activation Functions,
/// 2017.
struct Silu {
  static constexpr float kFarOut = 110.0f;  ///< like that of GeluErf

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

/// z = f(z) for a run; nothing where f is none or one of the D* kinds.
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

/// z *= f'(saved) for a run; nothing where f is not one of the D* kinds.
template <int kRun>
MP_DEVICE void multiply_by_derivative(mp_activation_t f, const float (&saved)[kRun],
                                      float (&z)[kRun]) {
  const auto each = [&](auto derivative) {
    MP_UNROLL
    for (int i = 0; i < kRun; i++) z[i] *= derivative(saved[i]);
  };
  switch (f) {
    case MP_ACT_DRELU:  // not a product, for 0 times infinity is NaN
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
