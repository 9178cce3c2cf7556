// mbarrier objects: PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier.
#pragma once

#include <cstdint>

#include "tools/softgpu/program/instruction.h"

namespace softgpu {

/// The bytes of a copy have arrived: takes them off the tx-count of an mbarrier of the cluster.
void complete_transaction(Warp &, const Instruction &, int lane, uint32_t mbarrier, uint32_t bytes);

}  // namespace softgpu
