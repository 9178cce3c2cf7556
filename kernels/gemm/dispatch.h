// Dispatch from run-time values to the template arguments of compiled kernels.
//
// Each function calls f with empty values whose types carry the result: `decltype(x)::value`.
// kernels/simt/half.h does the same for element types.
#pragma once

#include <type_traits>

#include "kernels/gemm/select.h"
#include "kernels/simt/half.h"

namespace mp::MP_TARGET {

template <auto value>
using Value = std::integral_constant<decltype(value), value>;

/// Calls f(op of A, op of B).
MP_CALLS_EITHER
template <class F>
MP_HD void with_ops(mp_op_t a, mp_op_t b, const F &f) {
  const auto with_b = [&](auto of_a) {
    if (b == MP_OP_N)
      f(of_a, Value<MP_OP_N>{});
    else
      f(of_a, Value<MP_OP_T>{});
  };
  if (a == MP_OP_N)
    with_b(Value<MP_OP_N>{});
  else
    with_b(Value<MP_OP_T>{});
}

/// Calls f(tile) for the kernel's tile, which must be in the list.
template <GemmTile... tiles, class F>
void with_tile(TileList<tiles...>, const GemmKernel &kernel, const F &f) {
  const auto is = [&](auto tile) {
    if (kernel.tile != decltype(tile)::value) return false;
    f(TileOf<decltype(tile)::value>{});
    return true;
  };
  if (!(... || is(Value<tiles>{})))
    throw_target_error(MP_ERROR_INTERNAL, "kernel %s is not compiled", kernel.name);
}

}  // namespace mp::MP_TARGET
