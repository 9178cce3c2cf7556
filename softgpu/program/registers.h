// Assignment of registers to slots.
#pragma once

#include <vector>

#include "softgpu/program/flow.h"
#include "softgpu/program/instruction.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu {

struct RowAssignment {
  std::vector<RegisterSlot> rows;  ///< slot of each register
  uint32_t end = 0;                ///< end of the last slot
};

/// Returns the bytes of a slot for a register of 1, 4 or 8 bytes.
constexpr uint32_t row_bytes(uint8_t width) {
  return width == 1 ? sizeof(Lanes) : uint32_t{width} * kWarpSize;
}

/// Assigns slots from `begin` on, a multiple of 64; registers with disjoint live ranges may share
/// one.  Slots with 4 or 8 bytes per lane are aligned to 64 bytes.
RowAssignment assign_rows(const std::vector<LiveRange> &, const std::vector<ptx::Register> &,
                          uint32_t begin);

}  // namespace softgpu
