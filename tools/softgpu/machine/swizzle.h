// How TMA and wgmma permute the 16-byte chunks of shared memory: PTX ISA, Swizzling Modes.
#pragma once

#include <cstdint>

namespace softgpu {

/// As CUtensorMapSwizzle.
enum class Swizzle : uint8_t { kNone, k32Bytes, k64Bytes, k128Bytes };

/// Bytes of a row that is permuted.
constexpr uint32_t swizzle_span(Swizzle swizzle) {
  return 16u << static_cast<int>(swizzle);
}

/// Bits 4 and up of an address are changed by as many from bit 7 on: by the row of 128 bytes.
constexpr uint32_t swizzled(uint32_t address, Swizzle swizzle) {
  const uint32_t mask = (1u << static_cast<int>(swizzle)) - 1;
  return address ^ (address >> 7 & mask) << 4;
}

}  // namespace softgpu
