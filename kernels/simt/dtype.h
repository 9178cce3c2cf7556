// From a type that is known at run time to the type that kernels are compiled for.
//
// f is called with an empty value that carries the answer: `typename decltype(x)::type`.
#pragma once

#include <type_traits>

#include "kernels/simt/half.h"
#include "mpcore/core.h"

namespace mp::MP_TARGET {

/// f(type of 16 bits)
MP_CALLS_EITHER
template <class F>
MP_HD auto with_half_type(mp_dtype_t dtype, const F &f) {
  if (dtype == MP_FP16) return f(std::type_identity<half>{});
  return f(std::type_identity<bf16>{});
}

/// f(type)
MP_CALLS_EITHER
template <class F>
MP_HD auto with_type(mp_dtype_t dtype, const F &f) {
  if (dtype == MP_FP32) return f(std::type_identity<float>{});
  return with_half_type(dtype, f);
}

}  // namespace mp::MP_TARGET
