// Stateless dropout masks: a function of seed, offset (on the device), tensor number and element
// index, so masks are not stored.
//
// Source: Srivastava et al., Dropout, 2014.
#pragma once

#include <cmath>

#include "kernels/simt/philox.h"
#include "kernels/simt/reproducible_math.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

/// Factor of the elements that are kept; 0 if nothing is dropped.
inline float keep_factor_of(float p) {
  return p > 0.0f ? 1.0f / (1.0f - p) : 0.0f;
}
/// Threshold of the random words: a smaller word drops its element.
inline uint32_t drop_threshold(float p) {
  return static_cast<uint32_t>(std::ldexp(static_cast<double>(p), 32));
}

/// Returns the random words of 4 consecutive elements.
/// @param tensor  number of the tensor, less than 2^16; different tensors have different masks
MP_DEVICE PhiloxWords draw_quad(uint64_t seed, uint64_t offset, uint32_t tensor, uint64_t quad) {
  return philox(
      {{static_cast<uint32_t>(quad), static_cast<uint32_t>(offset),
        static_cast<uint32_t>(offset >> 32), static_cast<uint32_t>(quad >> 32) | tensor << 16}},
      seed);
}

/// x[0 .. kQuad) *= mask.  Dropped elements become 0, even if they are NaN.
MP_DEVICE void drop_quad(float *x, const PhiloxWords &random, uint32_t threshold,
                         float keep_factor) {
  MP_UNROLL
  for (int j = 0; j < kQuad; j++)
    x[j] = random.x[j] < threshold ? 0.0f : reproducible::product(x[j], keep_factor);
}

}  // namespace mp::MP_TARGET
