// The functions of a GPU's special function units: one instruction each, where the exact ones take ten.
//
// Errors: PTX ISA, ex2.approx.ftz (2 ulp) and rcp.approx.ftz (1 ulp).  Subnormal arguments and results are 0
// there; on the host target they are not, and the errors are smaller.
#pragma once

#include <cmath>

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

/// e^x as 2^(x log2 e), three instructions where expf has ten.  The relative error is that of x log2 e,
/// which is rounded, and 2 ulp: together 2 + 1.2 |x| ulp.
MP_DEVICE float fast_exp(float x) {
  constexpr float kLog2E = 1.4426950409f;
  return fast_exp2(x * kLog2E);
}

}  // namespace mp::MP_TARGET
