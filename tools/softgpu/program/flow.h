// What the allocation of rows has to know of a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace softgpu {

enum class AccessKind : uint8_t {
  kRead,
  kWrite,
  kHold,  ///< an asynchronous instruction reads and writes it until the next wait
};

struct Access {
  uint32_t reg;
  AccessKind kind;
};

/// A statement of a kernel.  What belongs to it lies in Flow's lists behind what belongs to the one
/// before.
struct FlowStatement {
  uint32_t end_of_accesses = 0, end_of_targets = 0;
  bool is_guarded = false;  ///< lanes may pass it without executing it
  bool is_end = false;      ///< no lane that executes it goes on behind it, but to its targets
  bool is_wait = false;     ///< for asynchronous instructions
};

struct Flow {
  std::vector<FlowStatement> statements;
  std::vector<Access> accesses;
  std::vector<uint32_t> targets;                       ///< statements that may come next
  std::vector<std::pair<uint32_t, uint32_t>> renames;  ///< plain copies of one register to another
};

/// The statements from the first to the last in code order at which a register must keep its row;
/// none if first > last.
struct LiveRange {
  uint32_t first = ~0u, last = 0;
  bool is_empty() const { return first > last; }
};

/// The live range of each register.
std::vector<LiveRange> live_ranges(const Flow &, size_t num_registers);

}  // namespace softgpu
