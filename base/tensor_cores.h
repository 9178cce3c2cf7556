// Element types that the Tensor Cores of a device multiply.
#pragma once

#include "base/device_info.h"

namespace mp {

/// Returns NULL if Tensor Cores multiply the type, else the reason as a clause.
inline const char *why_no_tensor_cores(mp_dtype_t dtype, const Device &device) {
  if (dtype == MP_FP32) return "requires FP16 or BF16";
  if (device.arch < 70) return "requires sm_70 or newer";
  if (dtype == MP_BF16 && device.arch < 80) return "requires sm_80 or newer for BF16";
  return nullptr;
}

}  // namespace mp
