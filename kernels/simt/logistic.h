// The logistic function and tanh in fp32, with the same bits on every target: what is fused is written as
// fmaf, and division is that of IEEE.  No branches, so that the host compiler makes vectors of them.
//
// Errors: below 2.5 ulp each (tests/simulator/logistic.cpp); at 0, infinities and NaN they are exact.
#pragma once

#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// e^x of x <= 0, below 1.1 ulp; NaN stays NaN.  e^x = 2^n e^r, |r| <= ln 2 / 2; e^r = 1 + r + r^2 (...), whose
/// coefficients are a minimax fit to 0.03 ulp.
MP_DEVICE float exp_of_negative(float x) {
  constexpr float kLog2E = 0x1.715476p+0f, kLn2 = 0x1.62e43p-1f, kLn2Rest = -0x1.05c61p-29f;
  constexpr float kToInteger = 0x1.8p+23f;  // a sum with it has 2^0 for its last bit
  constexpr float kLeast = -104.0f;         // e^-104 rounds to 0
  x = x < kLeast ? kLeast : x;
  const float shifted = fmaf(x, kLog2E, kToInteger), n = shifted - kToInteger;
  const float r = fmaf(n, -kLn2Rest, fmaf(n, -kLn2, x));
  float rest = 0x1.6dbc68p-10f;
  rest = fmaf(rest, r, 0x1.124148p-7f);
  rest = fmaf(rest, r, 0x1.555454p-5f);
  rest = fmaf(rest, r, 0x1.555486p-3f);
  rest = fmaf(rest, r, 0.5f);
  const float power = fmaf(rest, r * r, r) + 1.0f;
  // By 2^n in two steps, because 2^-150 is no number of fp32.
  const int exponent = static_cast<int>(bits_of(shifted) - bits_of(kToInteger));
  const auto power_of_2 = [](int e) {
    return float_from_bits(static_cast<uint32_t>(e + 127) << 23);
  };
  const int half = exponent >> 1;
  return power * power_of_2(half) * power_of_2(exponent - half);
}

/// 1 / (1 + e^-x)
MP_DEVICE float logistic(float x) {
  const float e = exp_of_negative(-fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/// Where tanh_near is taken.
constexpr float kTanhNear = 0.625f;

/// tanh of small x: x + x^3 (...), a minimax fit to 0.04 ulp.
MP_DEVICE float tanh_near(float x) {
  const float square = x * x;
  float rest = -0x1.76ac14p-8f;
  rest = fmaf(rest, square, 0x1.5256d6p-6f);
  rest = fmaf(rest, square, -0x1.b84448p-5f);
  rest = fmaf(rest, square, 0x1.110768p-3f);
  rest = fmaf(rest, square, -0x1.555534p-2f);
  return fmaf(rest, x * square, x);
}

/// (1 - e^-2|x|) / (1 + e^-2|x|) with the sign of x.
MP_DEVICE float tanh_of(float x) {
  const float a = fabsf(x), near = tanh_near(a);
  const float e = exp_of_negative(-2.0f * a);
  const float far = (1.0f - e) / (1.0f + e);
  return copysignf(a < kTanhNear ? near : far, x);
}

}  // namespace mp::MP_TARGET
