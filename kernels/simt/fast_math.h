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
  return exp2f(x);
}
inline float fast_reciprocal(float x) {
  return 1.0f / x;
}

#endif

}  // namespace mp::MP_TARGET
