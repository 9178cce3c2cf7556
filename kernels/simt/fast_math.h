// Approximate exp2 and reciprocal on the GPU's special function units: one instruction each,
// instead of ten for the exact functions.  Division by a divisor that is known before the launch,
// as a multiplication and a shift.
//
// Errors (PTX ISA): ex2.approx.ftz 2 ulp, rcp.approx.ftz 1 ulp.  CUDA flushes subnormal arguments
// and results to 0; the host target does not, and its errors are smaller.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

#if MP_ON_CUDA

MP_DEVICE float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
MP_DEVICE float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#else

inline float fast_exp2(float x) {
  return std::exp2(x);
}
inline float fast_reciprocal(float x) {
  return 1.0f / x;
}

#endif

/// e^x as 2^(x log2 e): three instructions instead of ten for expf.  The relative error is 2
/// ulp plus the rounding error of x log2 e, together 2 + 1.2 |x| ulp.
MP_DEVICE float fast_exp(float x) {
  constexpr float kLog2E = 1.4426950409f;
  return fast_exp2(x * kLog2E);
}

// ---------------------------------------------------------------------------- division

struct Quotient {
  int32_t quotient, remainder;
};

/// Divisor, exact for dividends from 0 to 2^31 - 1.  Source: Granlund & Montgomery, Division by
/// Invariant Integers using Multiplication, 1994, section 4.
struct FastDivisor {
  int32_t divisor;
  uint32_t multiplier;  ///< ceil(2^shift / divisor)
  int32_t shift;

  MP_HD Quotient divide(int32_t x) const {
    const int32_t quotient =
        static_cast<int32_t>(static_cast<uint64_t>(static_cast<uint32_t>(x)) * multiplier >> shift);
    return {quotient, x - quotient * divisor};
  }
};

/// Returns the FastDivisor for `divisor` >= 1.
inline FastDivisor fast_divisor(int64_t divisor) {
  const int log2_ceil = std::bit_width(static_cast<uint64_t>(divisor - 1));
  const int shift = 31 + log2_ceil;
  const uint64_t multiplier = ((uint64_t{1} << shift) + static_cast<uint64_t>(divisor) - 1) /
                              static_cast<uint64_t>(divisor);
  return {static_cast<int32_t>(divisor), static_cast<uint32_t>(multiplier), shift};
}

}  // namespace mp::MP_TARGET
