// Logistic function, tanh and normal tail in fp32, bitwise equal on all targets: fused operations
// are written as fmaf, quotients are correctly rounded.  Branch-free, for vectorization by the host
// compiler and for interleaved instructions of several elements on GPUs.
//
// Errors: below 2.5 ulp, the normal tail below 6 ulp (tests/internals/logistic.cpp).  Results at 0,
// infinity and NaN are exact.
#pragma once

#include "kernels/simt/fast_math.h"
#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// e^x for x <= 0, error below 1.1 ulp; propagates NaN.
/// e^x = 2^n e^r with |r| <= ln 2 / 2.  e^r = 1 + r + r^2 (...), a minimax fit to 0.03 ulp.
MP_DEVICE float exp_of_negative(float x) {
  constexpr float kLog2E = 0x1.715476p+0f, kLn2 = 0x1.62e43p-1f, kLn2Rest = -0x1.05c61p-29f;
  constexpr float kToInteger = 0x1.8p+23f;  // a sum with it is rounded to an integer
  constexpr float kMin = -104.0f;           // e^-104 rounds to 0
  x = x < kMin ? kMin : x;
  const float shifted = fmaf(x, kLog2E, kToInteger), n = shifted - kToInteger;
  const float r = fmaf(n, -kLn2Rest, fmaf(n, -kLn2, x));
  float rest = 0x1.6dbc68p-10f;
  rest = fmaf(rest, r, 0x1.124148p-7f);
  rest = fmaf(rest, r, 0x1.555454p-5f);
  rest = fmaf(rest, r, 0x1.555486p-3f);
  rest = fmaf(rest, r, 0.5f);
  const float power = fmaf(rest, r * r, r) + 1.0f;
  // Scaled by 2^n in two steps: 2^-150 is not representable in fp32.
  const int exponent = static_cast<int>(bits_of(shifted) - bits_of(kToInteger));
  const auto power_of_2 = [](int e) {
    return float_from_bits(static_cast<uint32_t>(e + 127) << 23);
  };
  const int half = exponent >> 1;
  return power * power_of_2(half) * power_of_2(exponent - half);
}

/// n / d for the operands of quotient_near_1, correctly rounded (tests/internals compares them with
/// division).  These are the operations of CUDA's division, without its branch for other operands.
/// @param reciprocal  1 / d with an error of at most 1 ulp; correctly rounded for d = 2 - 2^-23
MP_DEVICE float corrected_quotient(float n, float d, float reciprocal) {
  reciprocal = fmaf(reciprocal, fmaf(-d, reciprocal, 1.0f), reciprocal);
  const float quotient = n * reciprocal;
  return fmaf(reciprocal, fmaf(-d, quotient, n), quotient);
}
/// n / d for d = 1 + e, 0 <= e <= 1, and n = e, 1 or 1 - e.
MP_DEVICE float quotient_near_1(float n, float d) {
#if MP_ON_CUDA
  return corrected_quotient(n, d, fast_reciprocal(d));
#else
  return n / d;
#endif
}

/// 1 / (1 + e^-x)
MP_DEVICE float logistic(float x) {
  const float e = exp_of_negative(-fabsf(x));
  return quotient_near_1(x < 0.0f ? e : 1.0f, 1.0f + e);
}

/// Limit of |x|, below which tanh uses tanh_near().
constexpr float kTanhNear = 0.625f;

/// tanh(x) for |x| < kTanhNear: x + x^3 (...), a minimax fit to 0.04 ulp.
MP_DEVICE float tanh_near(float x) {
  const float square = x * x;
  float rest = -0x1.76ac14p-8f;
  rest = fmaf(rest, square, 0x1.5256d6p-6f);
  rest = fmaf(rest, square, -0x1.b84448p-5f);
  rest = fmaf(rest, square, 0x1.110768p-3f);
  rest = fmaf(rest, square, -0x1.555534p-2f);
  return fmaf(rest, x * square, x);
}

/// tanh(x): (1 - e^-2|x|) / (1 + e^-2|x|) with the sign of x, or tanh_near().
MP_DEVICE float tanh_of(float x) {
  const float a = fabsf(x), near = tanh_near(a);
  const float e = exp_of_negative(-2.0f * a);
  const float far = quotient_near_1(1.0f - e, 1.0f + e);
  return copysignf(a < kTanhNear ? near : far, x);
}

/// 1 / x for 1 <= x < 16, error below 1.5 ulp, without the branches of a division.  In Newton's
/// method, the initial guess from the bits of x has a relative error of at most 1/8; each step
/// squares it.
MP_DEVICE float reciprocal_near_1(float x) {
  float guess = float_from_bits(0x7ef311c7u - bits_of(x));
  MP_UNROLL
  for (int step = 0; step < 4; step++) guess = fmaf(guess, fmaf(-x, guess, 1.0f), guess);
  return guess;
}

/// Lower tail of the standard normal distribution: Phi(-a) for a >= 0; propagates NaN.
/// With t = 1 / (1 + 0.7 a), the tail is e^(-a^2/2) t P(t - 1/2).  P is a minimax fit to 0.3 units
/// of 2^-24 for a <= 14.5, beyond which fp32 has 0.  The power corrects the rounding of a^2.
struct NormalTail {
  float power;  ///< e^(-a^2/2)
  float ratio;  ///< tail / power, at most 1/2

  MP_DEVICE float value() const { return power * ratio; }

  MP_DEVICE explicit NormalTail(float a) {
    constexpr float kMax = 14.5f;
    a = a > kMax ? kMax : a;
    const float square = a * a, rest = fmaf(a, a, -square);
    const float rounded = exp_of_negative(-0.5f * square);
    power = fmaf(rounded, -0.5f * rest, rounded);
    const float t = reciprocal_near_1(fmaf(0.7f, a, 1.0f)), v = t - 0.5f;
    float p = -0x1.40f89cp-2f;
    p = fmaf(p, v, 0x1.8316fap-2f);
    p = fmaf(p, v, 0x1.2e2a6ep-6f);
    p = fmaf(p, v, -0x1.2c3b58p-2f);
    p = fmaf(p, v, 0x1.fc96d6p-3f);
    p = fmaf(p, v, -0x1.a2f4f6p-5f);
    p = fmaf(p, v, -0x1.229bd4p-3f);
    p = fmaf(p, v, 0x1.9ccd94p-3f);
    p = fmaf(p, v, -0x1.0244f2p-4f);
    p = fmaf(p, v, -0x1.7a9d2ap-3f);
    p = fmaf(p, v, 0x1.ef0d6ap-3f);
    p = fmaf(p, v, 0x1.b3057cp-2f);
    ratio = p * t;
  }
};

}  // namespace mp::MP_TARGET
