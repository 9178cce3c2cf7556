// fp16 and bf16: one value, and whole rows of a warp.
//
// The conversions have no branches, so that the compiler makes vector instructions of any loop that
// calls them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tools/softgpu/program/instruction.h"

namespace softgpu {

/// What cvt makes of any NaN (PTX ISA, Half Precision Floating-Point Instructions: the canonical
/// NaN).
constexpr uint16_t kHalfNan = 0x7FFF;
constexpr uint32_t kFloatNan = 0x7FFFFFFF;

/// IEEE binary16: 5 bits of exponent, 10 of fraction.
struct Fp16 {
  static constexpr int kFractionBits = 10;
  static constexpr uint32_t kInfinity = 0x7C00, kMaximum = 0x7BFF, kMinNormal = 0x0400;

  /// Exact; a NaN keeps its sign and its bits.
  static float widen(uint32_t half) {
    const uint32_t magnitude = (half & 0x7FFF) << 13;
    // The product moves the exponent from a bias of 15 to one of 127, and normalises subnormal
    // numbers.
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    const uint32_t special = magnitude >= kInfinity << 13 ? 0x7F800000 : 0;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | (half & 0x8000) << 16);
  }

  /// To nearest, ties to even; any NaN becomes kHalfNan.  The rounding mode of the processor must
  /// be that, too.
  static uint32_t narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    // What is 2^16 and more is infinite.
    const uint32_t limited = std::min(magnitude, 143u << 23);
    // A power of two so large that its last place in fp32 is that of the result: the sum rounds
    // there.
    const uint32_t exponent = std::max(limited & 0x7F800000, 113u << 23);
    const float large = std::bit_cast<float>(exponent + (13u << 23));
    const float rounded = (std::bit_cast<float>(limited) + large) - large;
    // As in `widen`, the other way.
    const uint32_t half =
        std::bit_cast<uint32_t>(rounded * 0x1p-112f) >> 13 | (bits >> 16 & 0x8000);
    return magnitude > 0x7F800000 ? kHalfNan : half;
  }
};

/// The upper half of an fp32: 8 bits of exponent, 7 of fraction.
struct Bf16 {
  static constexpr int kFractionBits = 7;
  static constexpr uint32_t kInfinity = 0x7F80, kMaximum = 0x7F7F, kMinNormal = 0x0080;

  static float widen(uint32_t half) { return std::bit_cast<float>(half << 16); }

  static uint32_t narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return (bits & 0x7FFFFFFF) > 0x7F800000 ? kHalfNan : rounded;
  }
};

/// .ftz: a subnormal half counts as zero of the same sign.
template <class Format>
inline uint32_t flush_half(uint32_t half) {
  return half & Format::kInfinity ? half : half & 0x8000;
}

/// Two halves of a 32-bit register, the first in the lower bits.
template <class Format>
inline uint32_t narrow_pair(float low, float high) {
  return Format::narrow(low) | Format::narrow(high) << 16;
}

/// A row of pairs as fp32.
template <class Format>
inline void widen_pairs(float *__restrict low, float *__restrict high,
                        const uint32_t *__restrict from) {
  for (int lane = 0; lane < kWarpSize; lane++) {
    low[lane] = Format::widen(from[lane] & 0xFFFF);
    high[lane] = Format::widen(from[lane] >> 16);
  }
}

}  // namespace softgpu
