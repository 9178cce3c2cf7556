// fp32 and fp64 values with PTX semantics.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "softgpu/isa/elementwise.h"
#include "softgpu/isa/exponential.h"
#include "softgpu/isa/half.h"

namespace softgpu {

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

}  // namespace softgpu
