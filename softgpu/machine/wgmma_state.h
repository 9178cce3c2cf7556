// Pending wgmma operations and their accumulators.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "softgpu/machine/race_clock.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

struct WgmmaOperation {
  uint64_t sequence;  ///< increases by one per operation of the warp
  uint32_t group;
  uint64_t descriptor_a, descriptor_b;
  uint32_t accumulator;  ///< index in WgmmaState::accumulators
  uint32_t fenced;       ///< earliest async proxy fence of the lanes
  const Instruction *at;
  bool accumulates;  ///< scale-d
  bool is_done = false;
  SharedClock issued;  ///< clock of the warp at the issue, for SOFTGPU_RACECHECK
  std::array<std::array<uint32_t, kWarpSize>, 4> a;  ///< A in registers
};

/// Registers of pending operations.  Their values are hidden until the wait.  From the wait to the
/// next wgmma.fence, `values` serves to detect modifications of the registers.
struct WgmmaAccumulator {
  std::vector<RegisterSlot> rows;
  std::vector<float> values;  ///< 32 values per register
  bool is_live = false;
  bool is_unfenced = false;  ///< returned by a wait, without a wgmma.fence or wgmma since
};

struct WgmmaState {
  std::vector<WgmmaOperation> operations;
  std::vector<WgmmaAccumulator> accumulators;
  uint32_t num_live = 0;  ///< live accumulators
  uint32_t num_committed = 0;
  uint64_t next_sequence = 0;
  bool has_fenced = false;
  /// Values of Program::wgmma_a at the last wgmma.fence: 32 per register.
  std::vector<uint32_t> fenced_a;

  /// Returns whether a register belongs to a live accumulator.  32-bit registers are at least 128
  /// bytes apart.
  bool owns(RegisterSlot row) const {
    return num_live != 0 && row / 64 < is_owned.size() && is_owned[row / 64];
  }
  void set_owned(RegisterSlot row, bool owned) {
    if (row / 64 >= is_owned.size()) is_owned.resize(row / 64 + 1);
    is_owned[row / 64] = owned;
  }

 private:
  std::vector<uint8_t> is_owned;  ///< index: row / 64
};

/// Operands of each wgmma in the first warp that issued it, for comparison with the other warps of
/// the warpgroup.
struct WgmmaSequence {
  struct Issue {
    uint64_t sequence = ~uint64_t{0}, descriptor_a = 0, descriptor_b = 0;
    const Instruction *at = nullptr;
  };
  std::array<Issue, 256> issues;  ///< the last 256, by sequence modulo 256
};

/// Checks, after all four warps have issued the last operation of the warp, that its operands are
/// visible to the async proxy.
void check_wgmma(Warp &);
/// Executes the operations before `end` that all four warps have issued.
void perform_wgmma(Warp &, uint64_t end);
/// Copies a register that may belong to a pending operation by renaming it.
void move_accumulator(Warp &, RegisterSlot to, RegisterSlot from);

}  // namespace softgpu
