// Number formats as defined by IEEE 754, for the tests only.
//
// Rounding uses fp64 with powers of two and nearbyint; encoding follows the definition of the
// fields. Nothing is shared with the library or the compiler's half types, so that conversion
// errors on either side are found.
//
// Source: IEEE 754-2019, sections 3.3, 3.4 and 4.3.1; bfloat16 is binary32 without its low half.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "base/dtypes.h"

namespace mptest {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// All element types, and those of 16 bits.
#define MPTEST_DTYPE(type, ...) MP_##type,
inline constexpr mp_dtype_t kDtypes[] = {MP_FLOAT_TYPES(MPTEST_DTYPE)};
#undef MPTEST_DTYPE
using mp::kHalfTypes;

struct Format {
  int bits;          ///< storage bits
  int digits;        ///< significand bits, including the implicit one
  int min_exponent;  ///< the smallest subnormal is 2^min_exponent
  int max_exponent;  ///< all finite values are below 2^max_exponent
};

inline Format format_of(mp_dtype_t dtype) {
  // Formats of fp16, bf16 and fp32.
  constexpr Format kFormats[] = {{16, 11, -24, 16}, {16, 8, -133, 128}, {32, 24, -149, 128}};
  if (!mp::is_float(dtype)) throw std::invalid_argument("format_of: not an element type");
  return kFormats[dtype - 1];
}

/// 2^exponent, which is a normal fp64.  ldexp, called for each stored or compared value, took a
/// tenth of the tests' time.
inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

/// Half the distance from 1 to the next value: the largest relative error of one rounding.
inline double unit_roundoff(mp_dtype_t dtype) {
  return power_of_two(-format_of(dtype).digits);
}

/// Largest error of one rounding in the subnormal range.
inline double half_subnormal(mp_dtype_t dtype) {
  return power_of_two(format_of(dtype).min_exponent - 1);
}

inline double largest_finite(mp_dtype_t dtype) {
  return (1.0 - unit_roundoff(dtype)) * power_of_two(format_of(dtype).max_exponent);
}

/// Returns x rounded to nearest, ties to even; overflow gives infinity.
inline double round_to(mp_dtype_t dtype, double x) {
  if (!std::isfinite(x) || x == 0.0) return x;
  const Format format = format_of(dtype);
  int exponent = 0;
  (void)std::frexp(x, &exponent);  // 2^(exponent - 1) <= |x| < 2^exponent
  const int last_digit = std::max(exponent - format.digits, format.min_exponent);
  const double rounded = std::nearbyint(x * power_of_two(-last_digit)) * power_of_two(last_digit);
  return std::fabs(rounded) > largest_finite(dtype)
             ? std::copysign(std::numeric_limits<double>::infinity(), x)
             : rounded;
}

/// Storage bits of round_to(dtype, x).
inline uint32_t encode(mp_dtype_t dtype, double x) {
  const Format format = format_of(dtype);
  const int fraction_bits = format.digits - 1;
  const uint32_t sign = std::signbit(x) ? 1u << (format.bits - 1) : 0u;
  const uint32_t infinity = (1u << (format.bits - 1)) - (1u << fraction_bits);
  if (std::isnan(x)) return sign | infinity | 1u << (fraction_bits - 1);

  const double magnitude = std::fabs(round_to(dtype, x));
  if (std::isinf(magnitude)) return sign | infinity;
  const double smallest_normal = power_of_two(format.min_exponent + fraction_bits);
  if (magnitude < smallest_normal) {
    return sign | static_cast<uint32_t>(magnitude * power_of_two(-format.min_exponent));
  }
  int exponent = 0;
  const double significand = std::frexp(magnitude, &exponent) * power_of_two(format.digits);
  // The smallest normal has exponent field 1.  Adding the significand, whose leading one is not
  // stored, adds 1 to the field below it.
  const int field = exponent - 1 - (format.min_exponent + fraction_bits);
  return sign |
         ((static_cast<uint32_t>(field) << fraction_bits) + static_cast<uint32_t>(significand));
}

/// Value of storage bits.
inline double decode(mp_dtype_t dtype, uint32_t bits) {
  const Format format = format_of(dtype);
  const int fraction_bits = format.digits - 1;
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const int field = static_cast<int>((bits & ((1u << (format.bits - 1)) - 1)) >> fraction_bits);
  const int all_ones = (1 << (format.bits - 1 - fraction_bits)) - 1;
  const double sign = bits >> (format.bits - 1) & 1 ? -1.0 : 1.0;
  if (field == all_ones) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (field == 0) return sign * fraction * power_of_two(format.min_exponent);
  return sign * (fraction + (1u << fraction_bits)) * power_of_two(format.min_exponent + field - 1);
}

/// True for equal values and for two NaNs.  The sign of zero is not compared: it depends on the
/// order of a sum, which the library does not specify.
inline bool same_value(double x, double y) {
  return x == y || (std::isnan(x) && std::isnan(y));
}

}  // namespace mptest
