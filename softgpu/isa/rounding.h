// Rounding modes other than to nearest.
#pragma once

#include <cfenv>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#ifdef __SSE2_MATH__
#include <immintrin.h>
#endif

#include "softgpu/isa/elementwise.h"

namespace softgpu {

/// Sets the rounding mode of the processor for its lifetime.  SSE arithmetic uses only MXCSR, whose
/// change takes a quarter of the time of fesetround, which also sets the mode of the x87.
class RoundingMode {
 public:
#ifdef __SSE2_MATH__
  explicit RoundingMode(int mode) : before_(_mm_getcsr()) {
    _mm_setcsr((before_ & ~kMask) | static_cast<uint32_t>(mode) << 3);
  }
  ~RoundingMode() {
    _mm_setcsr(before_);
  }

 private:
  static constexpr uint32_t kMask = 0x6000;  ///< bits of FE_TOWARDZERO, shifted left by three
  uint32_t before_;
#else
  explicit RoundingMode(int mode) : before_(std::fegetround()) {
    std::fesetround(mode);
  }
  ~RoundingMode() {
    std::fesetround(before_);
  }

 private:
  int before_;
#endif
};

/// Executes an element-wise instruction with its rounding mode.
inline Step execute_rounding(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<ElementwiseOperands>();
  const RoundingMode mode(o.rounding);
  // An indirect call prevents the compiler from moving arithmetic out of the mode's lifetime.
  return o.rounded(warp, i, lanes);
}

/// Sets the rounding mode, a <cfenv> constant, of a decoded element-wise instruction.
inline void set_rounding(OpcodeCursor &form, int mode) {
  if (mode == FE_TONEAREST) return;
  // Keeps the operands for the handler that is called.
  ElementwiseOperands o = form.instruction.as<ElementwiseOperands>();
  o.rounding = mode;
  o.rounded = form.instruction.execute;
  form.instruction.make<ElementwiseOperands>() = o;
  form.instruction.execute = execute_rounding;
}

constexpr int kRoundingModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/// Returns the rounding mode for the opcode's modifier in the list, which is in the order of
/// kRoundingModes, or `otherwise`.
inline int take_rounding(OpcodeCursor &form, int otherwise,
                         std::initializer_list<std::string_view> names = {"rn", "rz", "rm", "rp"}) {
  const int mode = form.take_any(names);
  return mode < 0 ? otherwise : kRoundingModes[mode];
}
inline int need_rounding(OpcodeCursor &form,
                         std::initializer_list<std::string_view> names = {"rn", "rz", "rm", "rp"}) {
  const int mode = take_rounding(form, -1, names);
  if (mode < 0) form.decoder.unknown("rounding mode");
  return mode;
}

}  // namespace softgpu
