// Size of an element, for both targets.
#pragma once

#include <cstdint>

#include "kernels/simt/compiler.h"
#include "mpcore/core.h"

namespace mp {

/// Returns the bytes of an element of type fp16, bf16 or fp32.
MP_HD constexpr int64_t dtype_bytes(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

}  // namespace mp
