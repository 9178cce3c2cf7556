// fp16 and bf16: conversion of single values and of registers of a warp.
//
// The conversions are branch-free, so that loops over them are vectorized.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "softgpu/program/instruction.h"

namespace softgpu {

/// Result of cvt for any NaN: the canonical NaN (PTX ISA, Half Precision Floating-Point
/// Instructions).
constexpr uint16_t kHalfNan = 0x7FFF;
constexpr uint32_t kFloatNan = 0x7FFFFFFF;

/// IEEE binary16: 5 exponent bits, 10 fraction bits.
struct Fp16 {
  static constexpr uint32_t kInfinity = 0x7C00;

  /// Exact.  A NaN keeps its sign and its bits.
  static float widen(uint32_t half) {
    const uint32_t magnitude = (half & 0x7FFF) << 13;
    // The product changes the exponent bias from 15 to 127 and normalizes subnormal numbers.
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
    const uint32_t special = magnitude >= kInfinity << 13 ? 0x7F800000 : 0;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | (half & 0x8000) << 16);
  }

  /// Rounds to nearest, ties to even; any NaN becomes kHalfNan.  Requires the same rounding mode of
  /// the processor.
  static uint32_t narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    // Values of at least 2^16 become infinity.
    const uint32_t limited = std::min(magnitude, 143u << 23);
    // A power of two whose last place in fp32 equals the last place of the result: adding it rounds
    // there.
    const uint32_t exponent = std::max(limited & 0x7F800000, 113u << 23);
    const float large = std::bit_cast<float>(exponent + (13u << 23));
    const float rounded = (std::bit_cast<float>(limited) + large) - large;
    // Inverse of the conversion in `widen`.
    const uint32_t half =
        std::bit_cast<uint32_t>(rounded * 0x1p-112f) >> 13 | (bits >> 16 & 0x8000);
    return magnitude > 0x7F800000 ? kHalfNan : half;
  }
};

/// Upper half of an fp32: 8 exponent bits, 7 fraction bits.
struct Bf16 {
  static float widen(uint32_t half) { return std::bit_cast<float>(half << 16); }

  static uint32_t narrow(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    return (bits & 0x7FFFFFFF) > 0x7F800000 ? kHalfNan : rounded;
  }
};

/// Two halves in a 32-bit register, the first in the lower bits.
template <class Format>
inline uint32_t narrow_pair(float low, float high) {
  return Format::narrow(low) | Format::narrow(high) << 16;
}

/// Converts a register of pairs to fp32.
template <class Format>
inline void widen_pairs(float *__restrict low, float *__restrict high,
                        const uint32_t *__restrict from) {
  for (int lane = 0; lane < kWarpSize; lane++) {
    low[lane] = Format::widen(from[lane] & 0xFFFF);
    high[lane] = Format::widen(from[lane] >> 16);
  }
}

}  // namespace softgpu
