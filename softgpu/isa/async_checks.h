// Functions that the decoders of asynchronous operations share: mbarriers, tensor maps, and
// detection of generic writes to shared memory that the async proxy reads without a fence.
#pragma once

#include <cstdint>

#include "softgpu/machine/block.h"
#include "softgpu/machine/tensor_map.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

/// Reports an mbarrier if its initialization may be invisible to the user that is about to signal
/// it: another block or, with SOFTGPU_FENCECHECK, a bulk copy of its block.
void check_mbarrier_visible(Warp &, const Instruction &, int lane, uint32_t mbarrier, MbarrierUser);
/// Subtracts the bytes of a completed copy from the tx-count of an mbarrier of the cluster.
void complete_transaction(Warp &, const Instruction &, int lane, uint32_t mbarrier, uint32_t bytes);

/// Returns the map at an address.  Faults if there is none, and reports a map that was modified on
/// the device and is used without fence.proxy.tensormap.
TensorMap read_tensor_map(Warp &, const Instruction &, int lane, uint64_t address);

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
