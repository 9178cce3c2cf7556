// Detection of generic writes to shared memory that the async proxy reads without a fence.
#pragma once

#include <cstdint>

#include "softgpu/machine/block.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

void check_proxy_writes(Warp &, const Instruction &, Block &, uint32_t offset, uint32_t bytes,
                        uint32_t reader_fence, const char *reader);

/// Reports a generic write in the range that is not followed by a proxy fence of its thread, or of
/// the reader before its issue.  The fence may be anywhere on the path from the write to the read.
inline void check_proxy(Warp &warp, const Instruction &i, Block &block, uint32_t offset,
                        uint32_t bytes, uint32_t reader_fence, const char *reader) {
  if (block.smem.was_written(offset, bytes)) [[unlikely]]
    check_proxy_writes(warp, i, block, offset, bytes, reader_fence, reader);
}

}  // namespace softgpu
