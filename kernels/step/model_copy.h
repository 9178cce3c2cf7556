// The 16-bit copy of a run of fp32 master weights, as the optimizer and mp_masters_to_model write it.
#pragma once

#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// A 16-bit weight that overflows would make every later gradient non-finite.
MP_DEVICE float clamped(float w, mp_dtype_t dtype) {
  const float most = dtype == MP_FP16 ? kHalfMax : kBf16Max;
  return w > most ? most : w < -most ? -most : w;
}

/// Up to 8 weights, `at` in elements of the tensor `model`.
MP_DEVICE void store_copy(const CopyPolicy &policy, mp_dtype_t dtype, void *model, int64_t at,
                          float (&w)[kVec], int valid) {
  if ((policy.flags & MP_OPT_MODEL_OVERFLOW) == 0) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) w[i] = clamped(w[i], dtype);
  }
  store_run(dtype, model, at, w, valid);
}

}  // namespace mp::MP_TARGET
