// Address of a batch item of an operand.
#pragma once

#include "kernels/gemm/problem.h"
#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

MP_HD int64_t dtype_bytes(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

MP_DEVICE const void *item_address(const Operand &operand, mp_dtype_t dtype, int64_t item) {
  const void *address = nullptr;
  if (operand.items != nullptr)
    address = operand.items[item];
  else if (operand.base != nullptr)
    address = static_cast<const char *>(operand.base) + item * operand.stride * dtype_bytes(dtype);
  return in_gmem(address);
}

}  // namespace mp::MP_TARGET
