// Sums of squares in fp32 without overflow or loss of small elements.  If the square of a chunk's
// largest element is too large or too small, the chunk is summed again, scaled by a power of two.
#pragma once

#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Factor for the elements of a chunk before they are squared; 1 if the unscaled sum is accurate.
///
/// 2^14 squares below 2^112 cannot overflow, and squares that underflow next to one above 2^-80 do
/// not matter.  The other factors map the largest element to [2^-53, 2^56).
/// @param amax_bits  magnitude_bits of the largest element
MP_DEVICE float square_factor(uint32_t amax_bits) {
  constexpr uint32_t kSmall = 0x2b800000u, kLarge = 0x5b800000u;  // 2^-40, 2^56
  if (amax_bits == 0 || amax_bits >= kInfinityBits) return 1.0f;
  return amax_bits < kSmall ? 0x1p96f : amax_bits >= kLarge ? 0x1p-96f : 1.0f;
}

/// Removes `factor` from the sum of squares of elements that were multiplied by it.
MP_DEVICE double restored_squares(float sum, float factor) {
  return static_cast<double>(sum) / (static_cast<double>(factor) * static_cast<double>(factor));
}

}  // namespace mp::MP_TARGET
