// ld and st: operands, and observation of their accesses.
#pragma once

#include "softgpu/isa/lane_addresses.h"
#include "softgpu/isa/memory_parts.h"

namespace softgpu {

constexpr int kMaxVector = 4;

/// Operands of instructions that access `bytes` bytes at one address per lane.
struct AccessOperands {
  Handler watched;  ///< handler that execute_watched calls
  AddressOperand address;
  RegisterSlot data[kMaxVector];  ///< ld, st: elements; atom: result, operand, operand
  Space space;
  Access access;
  uint8_t bytes;  ///< per lane, for all elements
  MemoryOrder order;
};

/// Records the access and executes the instruction.
Step execute_watched(Warp &, const Instruction &, Lanes);

/// Installs execute_watched if accesses are observed.
void watch(Instruction &, AccessOperands &);

}  // namespace softgpu
