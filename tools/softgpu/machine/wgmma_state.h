// wgmma operations under way, and the accumulators that belong to them until they are waited for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/softgpu/machine/race_clock.h"
#include "tools/softgpu/program/instruction.h"

namespace softgpu {

struct Warp;

struct WgmmaOperation {
  uint64_t sequence;  ///< of this warp's operations, one higher than that of the one before
  uint32_t group;
  uint64_t descriptor_a, descriptor_b;
  uint32_t accumulator;  ///< index in WgmmaState::accumulators
  uint32_t fenced;       ///< the earliest of the lanes' fences of the async proxy
  const Instruction *at;
  bool accumulates;  ///< scale-d
  bool is_done = false;
  SharedClock issued;  ///< what the warp knew when it issued it, for SOFTGPU_RACECHECK
  std::array<std::array<uint32_t, kWarpSize>, 4> a;  ///< A in registers
};

/// Rows that operations in flight own; their values are hidden until the wait.  Behind it they tell until the next
/// wgmma.fence whether something else has changed the rows.
struct WgmmaAccumulator {
  std::vector<RegisterSlot> rows;
  std::vector<float> values;  ///< a row of 32 after the other
  bool is_live = false;
  bool is_unfenced = false;  ///< was given back, and no wgmma.fence or wgmma has followed
};

struct WgmmaState {
  std::vector<WgmmaOperation> operations;
  std::vector<WgmmaAccumulator> accumulators;
  uint32_t num_live = 0;  ///< of the accumulators
  uint32_t num_committed = 0;
  uint64_t next_sequence = 0;
  bool has_fenced = false;

  /// True of a row that belongs to a live accumulator.  Rows of 32-bit registers lie at least 128 bytes apart.
  bool owns(RegisterSlot row) const {
    return num_live != 0 && row / 64 < is_owned.size() && is_owned[row / 64];
  }
  void set_owned(RegisterSlot row, bool owned) {
    if (row / 64 >= is_owned.size()) is_owned.resize(row / 64 + 1);
    is_owned[row / 64] = owned;
  }

 private:
  std::vector<uint8_t> is_owned;  ///< by row / 64
};

/// What the warp of a warpgroup that came first passed to each wgmma, so that the others can be compared.
struct WgmmaSequence {
  struct Issue {
    uint64_t sequence = ~uint64_t{0}, descriptor_a = 0, descriptor_b = 0;
    const Instruction *at = nullptr;
  };
  std::array<Issue, 256> issues;  ///< the latest, by sequence modulo 256
};

/// Once all four warps have issued the last operation of the warp: what it will read must be visible to the async proxy
/// now.
void check_wgmma(Warp &);
/// Performs what all four warps have issued, of the operations before `end`.
void perform_wgmma(Warp &, uint64_t end);
/// A register that may belong to an operation in flight is copied: what moves is the name.
void move_accumulator(Warp &, RegisterSlot to, RegisterSlot from);

}  // namespace softgpu
