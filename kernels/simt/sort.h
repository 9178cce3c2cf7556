// Pairs sorted by their keys, stably: of equal keys the first stays the first.  Bodies in cuda/sort.cu, where
// the sort is CUB's, and host/sort.cpp.
#pragma once

#include "base/device_info.h"
#include "base/sort_scratch.h"
#include "kernels/simt/compiler.h"

namespace mp::MP_TARGET {

/// Two buffers, of which a sort reads one and writes both.
struct SortBuffers {
  uint32_t *keys[2];
  uint32_t *values[2];
};

/// Sorts the `count` > 0 pairs of buffers 0 by the low `bits` bits of their keys, those above being 0.
/// @param count    less than 2^31
/// @param bits     1 to 32
/// @param scratch  sort_scratch_bytes(count)
/// @return in which buffers, 0 or 1, they are then
int sort_pairs(const Device &, const SortBuffers &, int64_t count, int bits,
               const Workspace &scratch, mp_stream_t);

}  // namespace mp::MP_TARGET
