// fp64 functions with bitwise equal results on all targets, for values that decide a branch or are
// saved: loss scale, learning rate, bias correction.  The log2, pow and cos of C libraries differ
// in the last bit, and CUDA's log2 is not exact at every power of two.
//
// Errors are below 1 ulp; exp2 of an integer and log2 of a power of two are exact.  nvcc contracts
// products and sums into fma, the host compiler does not.  Here and in all callers, a product that
// is added to something is therefore exact or written as fma.
//
// Long functions are out of line, so that the optimizer's kernels need no more registers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/simt/compiler.h"

namespace mp::MP_TARGET::reproducible {

/// Rounded product a b.  fma(a, b, 0) cannot be contracted into a following sum; it turns -0 into
/// 0.  Rounding the exact fp64 product to fp32 does not help: nvcc replaces it by an fp32 product
/// and contracts that.
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
/// 2^exponent for -1022 <= exponent <= 1023.
MP_DEVICE double power_of_2(int exponent) {
  return double_from_bits(static_cast<uint64_t>(exponent + kExponentBias) << kMantissaBits);
}

/// 2^power m for 1/2 <= m < 2, computed on the bits so that there is no product to contract.
MP_DEVICE double times_power_of_2(double m, int power) {
  constexpr int kMinExponent = 1 - kExponentBias;
  const uint64_t bits = bits_of(m);
  const int exponent = static_cast<int>(bits >> kMantissaBits) - kExponentBias + power;
  if (exponent > kExponentBias) return kInfinity;
  if (exponent >= kMinExponent)
    return double_from_bits((bits & kMantissaMask) | bits_of(power_of_2(exponent)));
  // The bits of a subnormal count units of 2^-1074.  2^-1074 / 2^power is the ulp of `coarse`, so
  // the sum rounds m to it, and the difference of the bits is the number of units.
  const double coarse = power_of_2(kMinExponent - power);
  return double_from_bits(bits_of(coarse + m) - bits_of(coarse));
}

// ---------------------------------------------------------------------------- double-double

/// Double-double: hi + lo, with |lo| at most half an ulp of hi.  Source: Dekker 1971.
struct TwoDoubles {
  double hi, lo;
};

/// Sum as a double-double; requires |large| >= |small| or large = 0.
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

/// Horner's rule: c + x (c1 + x (c2 + ...)).
MP_DEVICE double polynomial(double, double c) {
  return c;
}
template <class... Coefficients>
MP_DEVICE double polynomial(double x, double c, Coefficients... more) {
  return fma(x, polynomial(x, more...), c);
}

// ---------------------------------------------------------------------------- logarithms

/// 2^exponent mantissa, with sqrt(1/2) <= mantissa < sqrt(2).
struct Decomposed {
  int exponent;
  double mantissa;
};
/// Splits x > 0, finite, into exponent and mantissa.
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

/// (m - 1) / (m + 1) for 1/2 <= m <= 2.
MP_DEVICE TwoDoubles atanh_argument(double m) {
  const double above = m - 1.0;  // exact
  const TwoDoubles below = m > 1.0 ? ordered_sum(m, 1.0) : ordered_sum(1.0, m);
  const double quotient = above / below.hi;
  const double rest = fma(-quotient, below.lo, fma(-quotient, below.hi, above));
  return ordered_sum(quotient, rest / below.hi);
}

/// log2 x for x > 0, finite, with a relative error below 2^-66.
/// log2 m = 2 / ln 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172, and
/// artanh s = s (1 + z/3 + z^2/5 + ...) with z = s^2.  The terms after z^2/5 are less than 2^-18 of
/// the sum, are computed with 53 bits and four roundings, and end where the next term is 2^-76.
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

/// Natural logarithm.
MP_OUT_OF_LINE double log(double x) {
  constexpr TwoDoubles kLn2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  if (!(x > 0.0 && x < kInfinity)) return log2(x);
  return product(wide_log2(x), kLn2).hi;
}

// ---------------------------------------------------------------------------- powers

/// 2^y for |y.hi| <= 1100.  2^y = 2^n e^v with |v| <= ln 2 / 2, and the Taylor series of e^v.
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
  constexpr double kEnough = 1100.0;  // 2^y is infinity or 0 beyond it
  if (std::isnan(y)) return kNan;
  return exp2_of({y > kEnough ? kEnough : y < -kEnough ? -kEnough : y, 0.0});
}

/// x^y like pow() in C, except that x < 0 gives NaN for all y but 0, and -0 counts as 0.
MP_DEVICE double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (!(x >= 0.0) || std::isnan(y)) return kNan;
  if (x == 0.0 || x == kInfinity) return (x == 0.0) == (y > 0.0) ? 0.0 : kInfinity;
  const TwoDoubles log2_x = wide_log2(x);
  const double exponent = product(log2_x.hi, y);
  if (!(fabs(exponent) < 1100.0)) return exponent > 0.0 ? kInfinity : 0.0;
  return exp2_of(product(log2_x, {y, 0.0}));
}

// ---------------------------------------------------------------------------- sine and cosine

/// cos t = 1 - z/2 + z^2 (...) with z = t^2.  1 - z/2 is a double-double; the rest is small.
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

/// cos(pi x) for 0 <= x <= 1.
MP_DEVICE double cospi(double x) {
  constexpr TwoDoubles kPi{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
  const double turned = x > 0.5 ? 1.0 - x : x;  // exact, like 0.5 - turned
  const double value = turned > 0.25 ? taylor_sin(product(kPi, {0.5 - turned, 0.0}))
                                     : taylor_cos(product(kPi, {turned, 0.0}));
  return x > 0.5 ? -value : value;
}

struct SinCos {
  float sin, cos;
};

/// Sine and cosine of an fp32 angle, errors below 0.51 ulp of fp32; NaN if |x| > 2^31.
/// x = n pi/2 + r with |r| <= pi/4.  pi/2 is a double-double.  x - n hi is exact: if n is not 0,
/// both terms are multiples of 2^-52, and the difference is below 1.
MP_DEVICE SinCos sin_cos(float x) {
  constexpr TwoDoubles kHalfPi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  if (!(fabsf(x) <= 0x1p31f)) return {NAN, NAN};
  const double wide = static_cast<double>(x), n = rint(wide * kTwoOverPi);
  const double r = fma(-n, kHalfPi.lo, fma(-n, kHalfPi.hi, wide)), z = r * r;
  const double sin_r =
      fma(r * z, polynomial(z, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800), r);
  const double cos_r = fma(
      z,
      polynomial(z, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600),
      1.0);
  const int quadrant = static_cast<int>(n);
  const float sin = static_cast<float>(quadrant & 1 ? cos_r : sin_r);
  const float cos = static_cast<float>(quadrant & 1 ? sin_r : cos_r);
  return {quadrant & 2 ? -sin : sin, (quadrant + 1) & 2 ? -cos : cos};
}

}  // namespace mp::MP_TARGET::reproducible
