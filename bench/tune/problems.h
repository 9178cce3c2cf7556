// What mptune asks of selection.
#pragma once

#include "mpcore.h"

namespace mptune {

constexpr mp_dtype_t kDtype = MP_FP16;  // bf16 has the same rates
constexpr bool kAligned = true;         // as all of mp_malloc are

}  // namespace mptune
