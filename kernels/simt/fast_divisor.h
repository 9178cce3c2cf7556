// Division by a divisor that is known before the launch, as a multiplication and a shift.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

struct Quotient {
  int32_t quotient, remainder;
};

/// Divisor, exact for dividends from 0 to 2^31 - 1.  Source: Granlund & Montgomery, Division by
/// Invariant Integers using Multiplication, 1994, section 4.
struct FastDivisor {
  int32_t divisor;
  uint32_t multiplier;  ///< ceil(2^shift / divisor)
  int32_t shift;

  MP_HD Quotient divide(int32_t x) const {
    const int32_t quotient =
        static_cast<int32_t>(static_cast<uint64_t>(static_cast<uint32_t>(x)) * multiplier >> shift);
    return {quotient, x - quotient * divisor};
  }
};

/// Returns the FastDivisor for `divisor` >= 1.
inline FastDivisor fast_divisor(int64_t divisor) {
  const int log2_ceil = std::bit_width(static_cast<uint64_t>(divisor - 1));
  const int shift = 31 + log2_ceil;
  const uint64_t multiplier = ((uint64_t{1} << shift) + static_cast<uint64_t>(divisor) - 1) /
                              static_cast<uint64_t>(divisor);
  return {static_cast<int32_t>(divisor), static_cast<uint32_t>(multiplier), shift};
}

}  // namespace mp::MP_TARGET
