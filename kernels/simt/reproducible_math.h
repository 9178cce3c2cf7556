// Functions in fp64 with the same bits on every target, for what decides a branch or is saved: the loss
// scale, the learning rate, the factors of bias correction.  The log2, pow and cos of two C libraries differ
// in the last bit, and CUDA's log2 is not exact at every power of two.
//
// Errors are below 1 ulp; exp2 of an integer and log2 of a power of two are exact.  nvcc fuses products into
// sums and the host compiler does not.  Here, therefore, a product that is added to something is written as
// fma, or is exact; so it is where these functions are used.
//
// What is out of line is so for the kernels of the optimizer: they need no more registers for it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/simt/compiler.h"

namespace mp::MP_TARGET::reproducible {

/// a b, rounded.  Being a sum, with 0, it is not fused into another one.  -0 becomes 0.  (To round an exact
/// product of fp64 to fp32 is no way around it: nvcc makes a product of fp32 of that, and fuses it.)
MP_DEVICE double product(double a, double b) {
  return fma(a, b, 0.0);
}
MP_DEVICE float product(float a, float b) {
  return fmaf(a, b, 0.0f);
}

// ---------------------------------------------------------------------------- bits

constexpr int kMantissaBits = 52, kExponentBias = 1023;
constexpr uint64_t kMantissaMask = (uint64_t{1} << kMantissaBits) - 1;
constexpr double kInfinity = HUGE_VAL, kNan = NAN;

MP_DEVICE uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
MP_DEVICE double double_from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
/// -1022 <= exponent <= 1023
MP_DEVICE double power_of_2(int exponent) {
  return double_from_bits(static_cast<uint64_t>(exponent + kExponentBias) << kMantissaBits);
}

/// 2^power m, of 1/2 <= m < 2.  By its bits, so that it is no product either.
MP_DEVICE double times_power_of_2(double m, int power) {
  constexpr int kMinExponent = 1 - kExponentBias;
  const uint64_t bits = bits_of(m);
  const int exponent = static_cast<int>(bits >> kMantissaBits) - kExponentBias + power;
  if (exponent > kExponentBias) return kInfinity;
  if (exponent >= kMinExponent)
    return double_from_bits((bits & kMantissaMask) | bits_of(power_of_2(exponent)));
  // A subnormal is a multiple of 2^-1074, and its bits say which.  2^-1074 / 2^power is the ulp of `coarse`, to
  // which the sum rounds m; so many ulp the sum lies above it.
  const double coarse = power_of_2(kMinExponent - power);
  return double_from_bits(bits_of(coarse + m) - bits_of(coarse));
}

// ---------------------------------------------------------------------------- 106 bits

/// hi + lo, |lo| at most half an ulp of hi.  Dekker 1971.
struct TwoDoubles {
  double hi, lo;
};

/// |large| >= |small|, or large is 0.
MP_DEVICE TwoDoubles ordered_sum(double large, double small) {
  const double hi = large + small;
  return {hi, small - (hi - large)};
}
MP_DEVICE TwoDoubles ordered_sum(const TwoDoubles &large, const TwoDoubles &small) {
  const TwoDoubles sum = ordered_sum(large.hi, small.hi);
  return ordered_sum(sum.hi, sum.lo + (large.lo + small.lo));
}
MP_DEVICE TwoDoubles product(const TwoDoubles &a, const TwoDoubles &b) {
  const double hi = product(a.hi, b.hi);
  return ordered_sum(hi, fma(a.hi, b.lo, fma(a.lo, b.hi, fma(a.hi, b.hi, -hi))));
}

/// c + x (the next + x (...))
MP_DEVICE double polynomial(double, double c) {
  return c;
}
template <class... Coefficients>
MP_DEVICE double polynomial(double x, double c, Coefficients... more) {
  return fma(x, polynomial(x, more...), c);
}

// ---------------------------------------------------------------------------- logarithms

/// 2^exponent mantissa, the mantissa between sqrt 1/2 and sqrt 2.
struct Decomposed {
  int exponent;
  double mantissa;
};
/// @param x  > 0, finite
MP_DEVICE Decomposed decomposed(double x) {
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  constexpr int kSubnormalShift = 54;
  const bool is_subnormal = bits_of(x) <= kMantissaMask;
  const double normal = is_subnormal ? x * power_of_2(kSubnormalShift) : x;
  const uint64_t above = bits_of(normal) - kSqrtHalf;
  const int exponent = static_cast<int>(static_cast<int64_t>(above) >> kMantissaBits);
  return {is_subnormal ? exponent - kSubnormalShift : exponent,
          double_from_bits((above & kMantissaMask) + kSqrtHalf)};
}

/// (m - 1) / (m + 1), of 1/2 <= m <= 2.
MP_DEVICE TwoDoubles atanh_argument(double m) {
  const double above = m - 1.0;  // exact
  const TwoDoubles below = m > 1.0 ? ordered_sum(m, 1.0) : ordered_sum(1.0, m);
  const double quotient = above / below.hi;
  const double rest = fma(-quotient, below.lo, fma(-quotient, below.hi, above));
  return ordered_sum(quotient, rest / below.hi);
}

/// log2 of x > 0, finite.  log2 m = 2 / ln 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172,
/// artanh s = s (1 + z/3 + z^2/5 + ...) with z = s^2.  What follows z^2/5 is less than 2^-18 of the sum,
/// has 53 bits less four roundings, and ends where the next term is 2^-76: the relative error is below 2^-66.
MP_DEVICE TwoDoubles wide_log2(double x) {
  constexpr TwoDoubles kTwoOverLn2{0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55};
  constexpr TwoDoubles kThird{0x1.5555555555555p-2, 0x1.5555555555555p-56};
  constexpr TwoDoubles kFifth{0x1.999999999999ap-3, -0x1.999999999999ap-57};
  const Decomposed parts = decomposed(x);
  const TwoDoubles s = atanh_argument(parts.mantissa), z = product(s, s);
  const double tail = polynomial(z.hi, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
                                 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27);
  const TwoDoubles of_fifth = ordered_sum(kFifth, {product(z.hi, tail), 0.0});
  const TwoDoubles of_third = ordered_sum(kThird, product(z, of_fifth));
  const TwoDoubles series = ordered_sum({1.0, 0.0}, product(z, of_third));
  const TwoDoubles fraction = product(product(kTwoOverLn2, s), series);
  return ordered_sum({static_cast<double>(parts.exponent), 0.0}, fraction);
}

MP_OUT_OF_LINE double log2(double x) {
  if (x == 0.0) return -kInfinity;
  if (!(x > 0.0)) return kNan;
  return x == kInfinity ? x : wide_log2(x).hi;
}

/// The natural one.
MP_OUT_OF_LINE double log(double x) {
  constexpr TwoDoubles kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  if (!(x > 0.0 && x < kInfinity)) return log2(x);
  return product(wide_log2(x), kLn2).hi;
}

// ---------------------------------------------------------------------------- powers

/// 2^y, of |y.hi| <= 1100.  2^y = 2^n e^v, |v| <= ln 2 / 2, with Taylor's series of e^v.
MP_OUT_OF_LINE double exp2_of(const TwoDoubles &y) {
  constexpr TwoDoubles kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  const double n = rint(y.hi);
  const TwoDoubles v = product(ordered_sum(y.hi - n, y.lo), kLn2);
  const double tail = polynomial(v.hi, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
                                 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800,
                                 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200);
  const TwoDoubles sum = ordered_sum(1.0, v.hi);
  const double m = sum.hi + fma(product(v.hi, v.hi), tail, v.lo + sum.lo);
  return times_power_of_2(m, static_cast<int>(n));
}

MP_DEVICE double exp2(double y) {
  constexpr double kEnough = 1100.0;  // for infinity, and for 0
  if (std::isnan(y)) return kNan;
  return exp2_of({y > kEnough ? kEnough : y < -kEnough ? -kEnough : y, 0.0});
}

/// x^y; as in C, but NaN of a negative x, whatever y is.
MP_DEVICE double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (!(x >= 0.0) || std::isnan(y)) return kNan;
  if (x == 0.0 || x == kInfinity) return (x == 0.0) == (y > 0.0) ? 0.0 : kInfinity;
  const TwoDoubles log2_x = wide_log2(x);
  const double exponent = product(log2_x.hi, y);
  if (!(fabs(exponent) < 1100.0)) return exponent > 0.0 ? kInfinity : 0.0;
  return exp2_of(product(log2_x, {y, 0.0}));
}

// ---------------------------------------------------------------------------- cosine

/// 1 + c z + z^2 (...), z = t^2: to 1 comes the exact half of z, and everything else is small beside it.
MP_DEVICE double taylor_cos(const TwoDoubles &t) {
  const TwoDoubles z = product(t, t);
  const double tail = polynomial(z.hi, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800,
                                 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000);
  const TwoDoubles sum = ordered_sum(1.0, -0.5 * z.hi);
  return sum.hi + fma(product(z.hi, z.hi), tail, fma(-0.5, z.lo, sum.lo));
}
MP_DEVICE double taylor_sin(const TwoDoubles &t) {
  const double z = product(t.hi, t.hi);
  const double tail = polynomial(z, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                                 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000);
  return t.hi + fma(product(t.hi, z), tail, t.lo);
}

/// cos(pi x), of 0 <= x <= 1.
MP_DEVICE double cospi(double x) {
  constexpr TwoDoubles kPi{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
  const double turned = x > 0.5 ? 1.0 - x : x;  // exact, as is what is below
  const double value = turned > 0.25 ? taylor_sin(product(kPi, {0.5 - turned, 0.0}))
                                     : taylor_cos(product(kPi, {turned, 0.0}));
  return x > 0.5 ? -value : value;
}

}  // namespace mp::MP_TARGET::reproducible
