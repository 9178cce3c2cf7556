// mbarrier objects: PTX ISA, Parallel Synchronization and Communication Instructions, mbarrier.
#pragma once

#include <cstdint>

#include "softgpu/machine/unfenced_mbarriers.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

/// Reports an mbarrier if its initialization may be invisible to the user that is about to signal
/// it: another block or, with SOFTGPU_FENCECHECK, a bulk copy of its block.
void check_mbarrier_visible(Warp &, const Instruction &, int lane, uint32_t mbarrier, MbarrierUser);
/// Subtracts the bytes of a completed copy from the tx-count of an mbarrier of the cluster.
void complete_transaction(Warp &, const Instruction &, int lane, uint32_t mbarrier, uint32_t bytes);

}  // namespace softgpu
