// Which registers share a row.
#pragma once

#include <vector>

#include "tools/softgpu/program/flow.h"
#include "tools/softgpu/program/instruction.h"
#include "tools/softgpu/ptx/syntax.h"

namespace softgpu {

struct RowAssignment {
  std::vector<RegisterSlot> rows;  ///< of each register
  uint32_t end = 0;                ///< behind the last row
};

/// Bytes of a row of a register of 1, 4 or 8 bytes.
constexpr uint32_t row_bytes(uint8_t width) {
  return width == 1 ? sizeof(Lanes) : uint32_t{width} * kWarpSize;
}

/// Gives rows from `begin` on, a multiple of 64, to registers; those whose live ranges do not meet
/// may have the same.  Rows of 4 and 8 bytes a lane begin at multiples of 64.
RowAssignment assign_rows(const std::vector<LiveRange> &, const std::vector<ptx::Register> &,
                          uint32_t begin);

}  // namespace softgpu
