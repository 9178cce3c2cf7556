// Conversion of a convolution pass to a template argument; kernels/gemm/gemm.h has the others.
#pragma once

#include "kernels/gemm/gemm.h"
#include "mpcore/conv.h"

namespace mp::MP_TARGET {

/// Calls f(Value<op>{}).
template <class F>
void with_conv_op(mp_conv_op_t op, const F &f) {
  if (op == MP_CONV_FPROP)
    f(Value<MP_CONV_FPROP>{});
  else if (op == MP_CONV_DGRAD)
    f(Value<MP_CONV_DGRAD>{});
  else
    f(Value<MP_CONV_WGRAD>{});
}

}  // namespace mp::MP_TARGET
