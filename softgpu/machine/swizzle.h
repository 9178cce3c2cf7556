// Swizzle of 16-byte vectors in shared memory by TMA and wgmma: PTX ISA, Swizzling Modes.
#pragma once

#include <cstdint>

namespace softgpu {

/// Values as in CUtensorMapSwizzle.
enum class Swizzle : uint8_t { kNone, k32Bytes, k64Bytes, k128Bytes };

/// Returns the bytes of a row within which vectors are permuted.
constexpr uint32_t swizzle_span(Swizzle swizzle) {
  return 16u << static_cast<int>(swizzle);
}

/// Returns the swizzled address: bits from bit 4 up are XORed with the bits from bit 7 up, the
/// index of the 128-byte row.
constexpr uint32_t swizzled(uint32_t address, Swizzle swizzle) {
  const uint32_t mask = (1u << static_cast<int>(swizzle)) - 1;
  return address ^ (address >> 7 & mask) << 4;
}

}  // namespace softgpu
