// Rounding to odd: a second rounding to fewer digits then gives the same result as a single
// rounding (Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms
// using rounding to odd).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "softgpu/isa/elementwise.h"

namespace softgpu {

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

}  // namespace softgpu
