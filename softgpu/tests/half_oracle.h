// Slow reference implementation of fp16 and bf16: exact values, rounded once.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>

namespace softgpu::test {

__extension__ using Float128 = __float128;

/// A 16-bit format.
struct HalfFormat {
  int exponent_bits, fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint16_t infinity() const {
    return static_cast<uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
  }
};
constexpr HalfFormat kFp16Format{5, 10}, kBf16Format{8, 7};

inline double widen(const HalfFormat &f, uint16_t half) {
  const int fraction = half & ((1 << f.fraction_bits) - 1),
            exponent = (half & 0x7FFF) >> f.fraction_bits;
  const double sign = half & 0x8000 ? -1 : 1;
  if ((half & 0x7FFF) > f.infinity()) return NAN;
  if ((half & 0x7FFF) == f.infinity()) return sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - f.bias() - f.fraction_bits);
  return sign *
         std::ldexp(fraction + (1 << f.fraction_bits), exponent - f.bias() - f.fraction_bits);
}

/// Rounds with a mode of <cfenv>.
inline uint16_t narrow(const HalfFormat &f, Float128 x, int rounding = FE_TONEAREST) {
  if (x != x) return 0x7FFF;
  const bool negative = std::signbit(static_cast<double>(x));
  const uint16_t sign = negative ? 0x8000 : 0;
  Float128 size = negative ? -x : x;
  if (std::isinf(static_cast<double>(x))) return static_cast<uint16_t>(sign | f.infinity());
  // Units of the last place of the power of two, or of subnormal numbers.
  int exponent = 1 - f.bias();
  while (size >= std::ldexp(2.0, exponent)) exponent++;
  const Float128 scaled = size * static_cast<Float128>(std::ldexp(1.0, f.fraction_bits - exponent));
  uint64_t units = static_cast<uint64_t>(scaled);
  const Float128 rest = scaled - static_cast<Float128>(units);
  const bool up = rounding == FE_TONEAREST    ? rest > 0.5 || (rest == 0.5 && units % 2 == 1)
                  : rounding == FE_TOWARDZERO ? false
                                              : rest > 0 && negative == (rounding == FE_DOWNWARD);
  units += up;
  // The hidden bit increments the exponent.
  const uint64_t bits = units + (static_cast<uint64_t>(exponent + f.bias() - 1) << f.fraction_bits);
  if (bits < f.infinity()) return static_cast<uint16_t>(sign | bits);
  const bool to_infinity = rounding == FE_TONEAREST || up;
  const bool away = rounding != FE_TOWARDZERO && negative == (rounding == FE_DOWNWARD);
  return static_cast<uint16_t>(sign | (to_infinity || away ? f.infinity() : f.infinity() - 1));
}

/// Returns a number on the same side of every fp16 or bf16 rounding boundary as a * b + c.
inline Float128 exact_fma(double a, double b, double c) {
  const double product = a * b;  // at most 22 bits
  if (!std::isfinite(product) || !std::isfinite(c) || product == 0 || c == 0)
    return static_cast<Float128>(product + c);
  // fp128 holds the sum exactly if the magnitudes are close.  Otherwise any smaller number of the
  // same sign is sufficient.
  const auto limited = [](double small, double large) {
    const double least = std::ldexp(std::fabs(large), -60);
    return std::fabs(small) < least ? std::copysign(least, small) : small;
  };
  return static_cast<Float128>(limited(product, c)) + static_cast<Float128>(limited(c, product));
}

}  // namespace softgpu::test
