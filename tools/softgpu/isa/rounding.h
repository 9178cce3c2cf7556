// Rounding modes other than to the nearest.
#pragma once

#include <cfenv>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#ifdef __SSE2_MATH__
#include <immintrin.h>
#endif

#include "tools/softgpu/isa/elementwise.h"

namespace softgpu {

/// Sets the rounding mode of the processor while it lives.  Arithmetic on x86 obeys MXCSR alone, of
/// which a change takes a quarter of the time of fesetround, which changes that of the x87 too.
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
  static constexpr uint32_t kMask = 0x6000;  ///< the bits of FE_TOWARDZERO, three places up
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

/// Performs an elementwise instruction in its rounding mode.
inline Step execute_rounding(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<ElementwiseOperands>();
  const RoundingMode mode(o.rounding);
  // The call by a pointer keeps the compiler from moving arithmetic out of the mode's lifetime.
  return o.rounded(warp, i, lanes);
}

/// Gives an elementwise instruction, already decoded, a rounding mode as of <cfenv>.
inline void set_rounding(OpcodeCursor &form, int mode) {
  if (mode == FE_TONEAREST) return;
  // The operands remain those of the handler that is called.
  ElementwiseOperands o = form.instruction.as<ElementwiseOperands>();
  o.rounding = mode;
  o.rounded = form.instruction.execute;
  form.instruction.make<ElementwiseOperands>() = o;
  form.instruction.execute = execute_rounding;
}

constexpr int kRoundingModes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};

/// The rounding mode of the one of these modifiers that the opcode has, in the order of
/// kRoundingModes; or `otherwise`.
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
