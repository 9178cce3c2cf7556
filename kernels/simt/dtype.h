// Dispatch from a run-time mp_dtype_t to a compile-time type.
//
// f receives an empty value that carries the type: `typename decltype(x)::type`.
#pragma once

#include <type_traits>

#include "kernels/simt/half.h"
#include "mpcore/core.h"

namespace mp::MP_TARGET {

/// Calls f with half or bf16.
MP_CALLS_EITHER
template <class F>
MP_HD auto with_half_type(mp_dtype_t dtype, const F &f) {
  if (dtype == MP_FP16) return f(std::type_identity<half>{});
  return f(std::type_identity<bf16>{});
}

/// Calls f with float, half or bf16.
MP_CALLS_EITHER
template <class F>
MP_HD auto with_type(mp_dtype_t dtype, const F &f) {
  if (dtype == MP_FP32) return f(std::type_identity<float>{});
  return with_half_type(dtype, f);
}

}  // namespace mp::MP_TARGET
