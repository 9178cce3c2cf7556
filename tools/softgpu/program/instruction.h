// What the front end makes of a PTX statement and a warp executes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

namespace softgpu {

struct Warp;

/// A set of lanes of a warp: bit l stands for lane l.
using Lanes = uint32_t;
constexpr int kWarpSize = 32;
constexpr Lanes kAllLanes = ~Lanes{0};

/// Where a PTX register lies in Warp::registers, in bytes.  A register of 16 or 32 bits is 32 words
/// of 4 bytes, one a lane (the upper half of a 16-bit one is 0); a register of 64 bits is 32 words
/// of 8 bytes; a predicate is one Lanes.  Constants and special registers have rows as well, which
/// nothing writes after the warp was made.
using RegisterSlot = uint32_t;

/// What became of an instruction.
enum class Step : uint8_t {
  kNext,   ///< done: the group goes on behind it
  kJump,   ///< done: the handler has set the program counter of the group
  kRetry,  ///< could not be done yet; it is tried again after others have run
  kWait,   ///< done as far as the group goes; another warp will wake it behind this instruction
  kExit,   ///< the lanes of the group have left the kernel
};

struct Instruction;
using Handler = Step (*)(Warp &, const Instruction &, Lanes);

struct Instruction {
  Handler execute = nullptr;
  RegisterSlot guard = 0;  ///< @%p: of a predicate
  bool has_guard = false;
  bool guard_is_negated = false;
  /// Lanes that a guard excludes go on without the others, which may have to wait here for other
  /// warps.
  bool is_collective = false;
  alignas(8) std::byte operands[44] = {};

  /// The operands of an instruction are a small struct that belongs to its handler.
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
