// Random numbers without state, which do not depend on the order of calls: Philox, and dropout
// masks as a function of seed, offset (on the device), tensor number and element index.  Masks are
// not stored.
//
// Sources: Salmon, Moraes, Dror & Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011,
// section 3.3 and table 2; Srivastava et al., Dropout, 2014.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/simt/reproducible_math.h"
#include "kernels/simt/vector.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- Philox

/// Four random words.
struct PhiloxWords {
  uint32_t x[4];
};

/// Philox 4x32 of kRounds rounds: a pure function of counter and key.  Seven rounds pass all tests
/// of BigCrush (Salmon et al., table 2); ten leave a margin.
template <int kRounds = 10>
MP_HD PhiloxWords philox(PhiloxWords counter, uint64_t key) {
  uint32_t low_key = static_cast<uint32_t>(key), high_key = static_cast<uint32_t>(key >> 32);
  PhiloxWords &c = counter;
  for (int round = 0; round < kRounds; round++) {
    const uint64_t p = uint64_t{0xd2511f53} * c.x[0];
    const uint64_t q = uint64_t{0xcd9e8d57} * c.x[2];
    c = {{static_cast<uint32_t>(q >> 32) ^ c.x[1] ^ low_key, static_cast<uint32_t>(q),
          static_cast<uint32_t>(p >> 32) ^ c.x[3] ^ high_key, static_cast<uint32_t>(p)}};
    low_key += 0x9e3779b9;
    high_key += 0xbb67ae85;
  }
  return counter;
}

// ---------------------------------------------------------------------------- dropout

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
