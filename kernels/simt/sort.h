// Stable sort of key-value pairs.  Bodies: kernels/simt/cuda/sort.cu (CUB), host/sort.cpp.
#pragma once

#include "base/device_info.h"
#include "base/workspace_layout.h"
#include "kernels/simt/compiler.h"

namespace mp::MP_TARGET {

/// Double buffers: a sort reads one and writes both.
struct SortBuffers {
  uint32_t *keys[2];
  uint32_t *values[2];
};

/// Sorts the pairs of buffers 0 by the low `bits` bits of their keys; the other bits must be 0.
/// @param count    1 to 2^31 - 1
/// @param bits     1 to 32
/// @param scratch  sort_scratch_bytes(count)
/// @return index of the buffers, 0 or 1, that contain the result
int sort_pairs(const Device &, const SortBuffers &, int64_t count, int bits,
               const Workspace &scratch, mp_stream_t);

}  // namespace mp::MP_TARGET
