// 2^x for fp32 and halves.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

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

}  // namespace softgpu
