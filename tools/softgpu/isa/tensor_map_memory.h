// Tensor maps where TMA finds them: in the parameters of a kernel, or in global memory.
#pragma once

#include <cstdint>

#include "tools/softgpu/machine/tensor_map.h"
#include "tools/softgpu/program/instruction.h"

namespace softgpu {

/// The map at an address; faults if there is none, and reports one that was changed on the device
/// and is used without fence.proxy.tensormap.
TensorMap read_tensor_map(Warp &, const Instruction &, int lane, uint64_t address);

}  // namespace softgpu
