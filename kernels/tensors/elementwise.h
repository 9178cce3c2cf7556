// Elementwise conversion, for use by other launches.
#pragma once

#include <cstdint>

#include "base/device_info.h"
#include "kernels/simt/compiler.h"
#include "mpcore/core.h"

namespace mp::MP_TARGET {

/// dst[i] = src[i], rounded to the type of dst, to nearest, ties to even.
void cast(const Device &, const void *src, mp_dtype_t, void *dst, mp_dtype_t, int64_t count,
          mp_stream_t);

}  // namespace mp::MP_TARGET
