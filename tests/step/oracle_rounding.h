// The 16-bit copy of a master weight as documented in mpcore/optimizer.h, in fp64: rounded to
// nearest or stochastically, clamped or infinite.
#pragma once

#include <array>
#include <cmath>

#include "oracle_optimizer.h"

namespace mptest::oracle {

/// Philox 4x32 of `rounds` rounds, from Salmon et al. 2011: per round two multiplications, whose
/// halves are exchanged; the keys are incremented by the golden ratio and by sqrt(3) - 1.
inline std::array<uint32_t, 4> philox(const std::array<uint32_t, 4> &counter, uint64_t seed,
                                      uint64_t rounds = 10) {
  constexpr uint64_t kLow = 0xffffffff;
  std::array<uint64_t, 4> c = {counter[0], counter[1], counter[2], counter[3]};
  for (uint64_t round = 0; round < rounds; ++round) {
    const uint64_t key_0 = (seed + round * 0x9e3779b9) & kLow;
    const uint64_t key_1 = ((seed >> 32) + round * 0xbb67ae85) & kLow;
    const uint64_t left = c[2] * 0xcd9e8d57, right = c[0] * 0xd2511f53;
    c = {(left >> 32) ^ c[1] ^ key_0, left & kLow, (right >> 32) ^ c[3] ^ key_1, right & kLow};
  }
  std::array<uint32_t, 4> words;
  for (size_t i = 0; i < 4; ++i) words[i] = static_cast<uint32_t>(c[i]);
  return words;
}

/// Implements the mask of dropout documented in mpcore/sequences.h.
/// @param layer  of a recurrent network
inline bool is_dropped(uint64_t i, float p, uint64_t seed, uint64_t offset, int64_t layer = 0) {
  const uint64_t quad = i / 4, high = quad >> 32 | static_cast<uint64_t>(layer) << 16;
  const auto words = philox({static_cast<uint32_t>(quad), static_cast<uint32_t>(offset),
                             static_cast<uint32_t>(offset >> 32), static_cast<uint32_t>(high)},
                            seed);
  return words[i % 4] < std::floor(std::ldexp(static_cast<double>(p), 32));
}

/// Returns the factor of elements that dropout keeps.
inline double keep_factor(float p) {
  return round_to(MP_FP32, 1.0 / round_to(MP_FP32, 1.0 - static_cast<double>(p)));
}

/// Returns the random word of a weight in step t.
inline uint32_t rounding_word(uint64_t seed, int64_t t, size_t tensor, size_t element) {
  const uint64_t quad = element / 4, step = static_cast<uint64_t>(t);
  const uint64_t high = (quad >> 32) + (step >> 32) * 4096;
  return philox({static_cast<uint32_t>(quad), static_cast<uint32_t>(high),
                 static_cast<uint32_t>(tensor), static_cast<uint32_t>(step)},
                seed)[element % 4];
}

/// Values adjacent to a number in a type of unlimited range.
struct Neighbours {
  double below, above;  ///< magnitudes; if the type holds w, below is |w|
  double fraction;      ///< position of |w| between below and above, in [0, 1)
};

inline Neighbours neighbours(double w, mp_dtype_t dtype) {
  const Format format = format_of(dtype);
  int exponent = 0;
  (void)std::frexp(w, &exponent);
  const double unit =
      std::ldexp(1.0, w == 0.0 ? format.min_exponent
                               : std::max(exponent - format.digits, format.min_exponent));
  const double units = std::floor(std::fabs(w) / unit);
  return {units * unit, (units + 1.0) * unit, std::fabs(w) / unit - units};
}

inline double stochastically_rounded(double w, mp_dtype_t dtype, uint32_t word) {
  if (!std::isfinite(w)) return w;
  const Neighbours n = neighbours(w, dtype);
  // FP16 subnormals compare the word with the fraction; other values add its low bits.
  const bool subnormal = dtype == MP_FP16 && std::fabs(w) < 0x1p-14;
  const double bits = std::ldexp(1.0, 24 - format_of(dtype).digits);
  const bool up = subnormal ? word < std::floor(n.fraction * 0x1p32)
                            : n.fraction + std::fmod(word, bits) / bits >= 1.0;
  return std::copysign(up ? n.above : n.below, w);
}

struct Copy {
  double value;
  bool overflows;
};

inline Copy copy_of(double w, mp_dtype_t dtype, uint32_t flags, uint32_t word) {
  if (flags & MP_OPT_FLAG_STOCHASTIC_ROUNDING) w = stochastically_rounded(w, dtype, word);
  return {model_of(w, dtype, flags), std::isinf(round_to(dtype, w))};
}

}  // namespace mptest::oracle
