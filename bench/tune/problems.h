// Fixed properties of the problems that mptune passes to kernel selection.
#pragma once

#include "mpcore.h"

namespace mptune {

constexpr mp_dtype_t kDtype = MP_FP16;  // bf16 has the same rates
constexpr bool kAligned = true;         // like all memory of mp_malloc

}  // namespace mptune
