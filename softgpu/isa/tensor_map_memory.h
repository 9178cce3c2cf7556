// Tensor maps that TMA reads: in kernel parameters or global memory.
#pragma once

#include <cstdint>

#include "softgpu/machine/tensor_map.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

/// Returns the map at an address.  Faults if there is none, and reports a map that was modified on
/// the device and is used without fence.proxy.tensormap.
TensorMap read_tensor_map(Warp &, const Instruction &, int lane, uint64_t address);

}  // namespace softgpu
