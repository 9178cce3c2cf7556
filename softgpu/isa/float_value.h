// fp32 and fp64 values with PTX semantics.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "softgpu/isa/elementwise.h"
#include "softgpu/isa/half.h"

namespace softgpu {

/// Returns 2^x from the power series in fp64, whose error is far below the rounding to fp32.
/// Branch-free, so that loops are vectorized.
inline float exp2(float x) {
  constexpr std::array<double, 12> kCoefficients = [] {
    constexpr double kLn2 = 0.693147180559945309417;
    std::array<double, 12> c{1};
    for (size_t k = 1; k < c.size(); k++) c[k] = c[k - 1] * kLn2 / static_cast<double>(k);
    return c;
  }();
  // Beyond these limits the result is 0 or infinity.  A NaN passes both comparisons.
  const double limited = x < -200 ? -200 : x > 200 ? 200 : x;
  // The lower bits of the sum are the integer nearest to x.
  constexpr double kShift = 0x1.8p52;
  const double shifted = limited + kShift;
  const double fraction = limited - (shifted - kShift);
  double power = 0;
#pragma GCC unroll 12
  for (size_t k = kCoefficients.size(); k-- > 0;)
    power = std::fma(power, fraction, kCoefficients[k]);
  const uint64_t exponent = std::bit_cast<uint64_t>(shifted) << 52;
  return static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(power) + exponent));
}

/// .ftz: converts a subnormal fp32 to zero of the same sign.
inline float flush(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>(bits & 0x7F800000 ? bits : bits & 0x80000000);
}
/// Every NaN result of fp32 arithmetic has the same bits; fp64 propagates the NaN of an operand.
inline float canonical(float x) {
  return x == x ? x : std::bit_cast<float>(kFloatNan);
}
inline double canonical(double x) {
  return x;
}
/// .sat: clamps to [0, 1]; a NaN becomes 0.
template <class T>
inline T saturate(T x) {
  return x > 0 ? (x < 1 ? x : T{1}) : T{0};
}

inline constexpr auto add = []<class T>(T a, T b) { return a + b; };
inline constexpr auto subtract = []<class T>(T a, T b) { return a - b; };
inline constexpr auto multiply = []<class T>(T a, T b) { return a * b; };
inline constexpr auto power_of_two = []<class T>(T a) { return exp2(a); };
inline constexpr auto hyperbolic_tangent = []<class T>(T a) { return std::tanh(a); };

// min and max order -0 before +0, and return the number if one operand is a NaN.

inline constexpr auto minimum = []<class T>(T a, T b) {
  const T zero = std::bit_cast<T>(std::bit_cast<Word<T>>(a) | std::bit_cast<Word<T>>(b));
  const T less = a < b ? a : b < a ? b : zero;
  return a != a ? b : b != b ? a : less;
};
inline constexpr auto maximum = []<class T>(T a, T b) {
  const T zero = std::bit_cast<T>(std::bit_cast<Word<T>>(a) & std::bit_cast<Word<T>>(b));
  const T greater = a > b ? a : b > a ? b : zero;
  return a != a ? b : b != b ? a : greater;
};
/// .NaN: returns a NaN if an operand is one.
template <auto kExtremum>
constexpr auto or_nan = []<class T>(T a, T b) {
  return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : kExtremum(a, b);
};

/// An fp32 operation with .ftz and .sat.
template <auto kOp, bool kFtz, bool kSat, class Signature = SignatureOf<kOp, float>>
struct FloatOp;
template <auto kOp, bool kFtz, bool kSat, class... A>
struct FloatOp<kOp, kFtz, kSat, float (*)(A...)> {
  static float of(A... operands) {
    const float result = kFtz ? flush(kOp(flush(operands)...)) : kOp(operands...);
    return canonical(kSat ? saturate(result) : result);
  }
};

/// Decodes an fp32 operation that may have .ftz, and optionally .sat.
template <auto kOp, bool kMaySaturate = false>
void decode_single(OpcodeCursor &form) {
  with_flags(
      [&](auto ftz, auto sat) {
        decode_elementwise<FloatOp<kOp, ftz, kMaySaturate && sat>::of>(form);
      },
      form.take("ftz"), kMaySaturate && form.take("sat"));
}
/// Decodes an fp32 or fp64 operation; fp64 has neither modifier.
template <auto kOp, bool kMaySaturate = false>
void decode_float_op(OpcodeCursor &form) {
  if (form.type == Type::kF64) return decode_elementwise<kOp, double>(form);
  decode_single<kOp, kMaySaturate>(form);
}

// ---- rounding to odd

// A second rounding to fewer digits then gives the same result as a single rounding (Boldo and
// Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd).

/// Converts a value rounded to nearest to one rounded to odd: an inexact value is between an even
/// and an odd number.
template <class T>
inline T to_odd(T nearest, bool is_inexact, bool is_too_large) {
  const Word<T> bits = std::bit_cast<Word<T>>(nearest);
  return std::bit_cast<T>(is_inexact ? (bits - is_too_large) | 1 : bits);
}
/// Returns a + b rounded to odd, using Knuth's exact error of a sum; the error is a NaN if the sum
/// is not finite.
template <class T>
inline T add_to_odd(T a, T b) {
  const T sum = a + b;
  const T b_in_sum = sum - a;
  const T error = (a - (sum - b_in_sum)) + (b - b_in_sum);
  return to_odd(sum, error < 0 || error > 0, (error < 0) != (sum < 0));
}
inline float narrow_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double size = std::fabs(x), nearest_size = std::fabs(static_cast<double>(nearest));
  return to_odd(nearest, nearest_size < size || nearest_size > size, nearest_size > size);
}
/// Converts an integer to fp64; lower bits that fp64 cannot represent are ORed into one bit.
inline double to_odd_double(uint64_t x) {
  return static_cast<double>(x >> 53 == 0 ? x : (x >> 11 | ((x & 2047) != 0)) << 11);
}

// ---- interpretations of a register word, as template parameters: Value::of(Value::Held word)

template <class T>
struct Plain {
  using Held = Word<T>;
  static T of(Held word) { return value_of<T>(word); }
};
/// fp32 with .ftz.
struct FlushedFloat {
  using Held = uint32_t;
  static float of(uint32_t word) { return flush(std::bit_cast<float>(word)); }
};
/// The lower or upper half of a register.
template <class Format, bool kUpper = false>
struct Half {
  using Held = uint32_t;
  static float of(uint32_t word) { return Format::widen(kUpper ? word >> 16 : word & 0xFFFF); }
};

}  // namespace softgpu
