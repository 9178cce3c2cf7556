// Decoded instructions that a warp executes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace softgpu {

struct Warp;

/// Set of lanes of a warp: bit l is lane l.
using Lanes = uint32_t;
constexpr int kWarpSize = 32;
constexpr Lanes kAllLanes = ~Lanes{0};

/// Byte offset of a PTX register in Warp::registers.  A 16- or 32-bit register has 4 bytes per lane
/// (the upper half of a 16-bit register is 0), a 64-bit register 8 bytes per lane, and a predicate
/// is one Lanes.  Constants and special registers also have slots, which are read-only after the
/// warp has been created.
using RegisterSlot = uint32_t;

/// Predicate operand, which may be negated.
struct PredicateOperand {
  RegisterSlot row;
  bool is_negated;
};

/// Result of an instruction.
enum class Step : uint8_t {
  kNext,   ///< completed: the group continues with the next instruction
  kJump,   ///< completed: the handler has set the program counter of the group
  kRetry,  ///< not possible yet: retried after other warps have run
  kWait,   ///< waits: another warp wakes the group, which continues with the next instruction
  kExit,   ///< the lanes of the group have exited the kernel
};

struct Instruction;
using Handler = Step (*)(Warp &, const Instruction &, Lanes);

struct Instruction {
  Handler execute = nullptr;
  RegisterSlot guard = 0;  ///< predicate of @%p
  bool has_guard = false;
  bool guard_is_negated = false;
  /// Lanes that a guard excludes continue separately, because the others may wait for other warps.
  bool is_collective = false;
  alignas(8) std::byte operands[44] = {};

  /// Operands are a small struct that belongs to the handler.
  template <class Operands>
  Operands &make() {
    check<Operands>();
    return *new (operands) Operands();
  }
  template <class Operands>
  const Operands &as() const {
    check<Operands>();
    return *std::launder(reinterpret_cast<const Operands *>(operands));
  }

 private:
  template <class Operands>
  static constexpr void check() {
    static_assert(sizeof(Operands) <= sizeof(operands) && alignof(Operands) <= 8);
    static_assert(std::is_trivially_copyable_v<Operands> &&
                  std::is_trivially_destructible_v<Operands>);
  }
};
static_assert(sizeof(Instruction) == 64);

}  // namespace softgpu
