// Assignment of registers to slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "softgpu/program/instruction.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu {

enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kHold,  ///< accessed by an asynchronous instruction until the next wait
};

struct Access {
  uint32_t reg;
  AccessKind kind;
};

/// A statement of a kernel.  Its entries in the lists of Flow follow those of the previous
/// statement.
struct FlowStatement {
  uint32_t end_of_accesses = 0, end_of_targets = 0;
  bool is_guarded = false;  ///< lanes may skip it
  bool is_end = false;      ///< execution continues only at its targets
  bool is_wait = false;     ///< waits for asynchronous instructions
};

struct Flow {
  std::vector<FlowStatement> statements;
  std::vector<Access> accesses;
  std::vector<uint32_t> targets;  ///< possible next statements
  /// Copies between registers: destination and source.
  std::vector<std::pair<uint32_t, uint32_t>> renames;
};

/// First and last statement, in code order, between which a register must keep its slot; empty if
/// first > last.
struct LiveRange {
  uint32_t first = ~0u, last = 0;
  bool is_read_first = false;  ///< may be read before it is written
  bool is_empty() const { return first > last; }
};

/// Returns the live range of each register.
std::vector<LiveRange> live_ranges(const Flow &, size_t num_registers);

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
