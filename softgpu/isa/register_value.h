// Interpretations of a register word, as template parameters: Value::of(Value::Held word).
#pragma once

#include <bit>
#include <cstdint>

#include "softgpu/isa/elementwise.h"
#include "softgpu/isa/float_value.h"
#include "softgpu/isa/half.h"

namespace softgpu {

template <class T>
struct Plain {
  using Held = Word<T>;
  static T of(Held word) { return value_of<T>(word); }
};
/// fp32 with .ftz.
struct FlushedFloat {
  using Held = uint32_t;
  static float of(uint32_t word) { return flush(std::bit_cast<float>(word)); }
};
/// The lower or upper half of a register.
template <class Format, bool kUpper = false, bool kFtz = false>
struct Half {
  using Held = uint32_t;
  static float of(uint32_t word) {
    uint32_t half = kUpper ? word >> 16 : word & 0xFFFF;
    if (kFtz) half = flush_half<Format>(half);
    return Format::widen(half);
  }
};

}  // namespace softgpu
