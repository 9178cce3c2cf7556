// ld and st.
#pragma once

#include "tools/softgpu/isa/lane_addresses.h"
#include "tools/softgpu/isa/memory_parts.h"

namespace softgpu {

constexpr int kMaxVector = 4;

/// Of instructions that touch `bytes` at one address per lane.
struct AccessOperands {
  Handler watched;  ///< what executes the instruction, if execute_watched stands before it
  AddressOperand address;
  RegisterSlot data[kMaxVector];  ///< ld, st: of the elements; atom: result, operand, operand
  Space space;
  Access access;
  uint8_t bytes;  ///< of a lane, all elements together
  MemoryOrder order;
};

/// Tells those who watch, and executes.
Step execute_watched(Warp &, const Instruction &, Lanes);

/// Puts execute_watched in front of the handler of an instruction that has these operands, if
/// anybody watches.
void watch(Instruction &, AccessOperands &);

}  // namespace softgpu
