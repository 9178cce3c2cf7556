// ld and st: operands, and observation of their accesses.
#pragma once

#include "softgpu/isa/decode.h"
#include "softgpu/isa/lane_addresses.h"

namespace softgpu {

/// Executes an instruction with AccessOperands and untranslated addresses, and checks for races.
Step execute_checked(Warp &, const Instruction &, Lanes, const LaneAddresses &);

/// Visibility and ordering of an access: PTX ISA, Memory Consistency Model.  Execution is strong
/// for all accesses; only SOFTGPU_RACECHECK uses this.
struct MemoryOrder {
  bool is_strong : 1, acquires : 1, releases : 1;
};

inline MemoryOrder take_memory_order(OpcodeCursor &form, bool is_atomic) {
  constexpr int kWeak = 0, kAcquire = 2, kRelease = 3, kBoth = 4;
  const int order =
      form.take_any({"weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio"});
  form.take_any({"cta", "cluster", "gpu", "sys"});
  return {is_atomic || order > kWeak, order == kAcquire || order == kBoth,
          order == kRelease || order == kBoth};
}
/// Consumes cache modifiers, which have no effect: PTX ISA, Cache Operators and Cache Eviction
/// Priority Hints.  Returns whether there is an additional operand, the policy.
inline bool take_cache_hints(OpcodeCursor &form) {
  form.take_any({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last",
                 "L1::no_allocate"});
  form.take_any({"L2::evict_normal", "L2::evict_first", "L2::evict_last"});
  const bool has_policy = form.take("L2::cache_hint");
  form.take_any({"L2::64B", "L2::128B", "L2::256B"});
  return has_policy;
}

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
