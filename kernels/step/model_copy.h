// 16-bit copy of fp32 master weights for the optimizer and mp_masters_to_model: rounded to nearest
// or stochastically, clamped or not, with or without a count of overflows.
#pragma once

#include <cmath>

#include "kernels/simt/random.h"
#include "kernels/simt/reduce.h"
#include "kernels/simt/vector.h"
#include "kernels/step/step_args.h"
#include "kernels/tensors/runs.h"

namespace mp::MP_TARGET {

/// Destination of the copy of one tensor in one step.
struct CopyTarget {
  void *model;
  mp_dtype_t dtype;
  uint32_t tensor;
  int64_t t;
};

MP_DEVICE bool overflows(float w, mp_dtype_t dtype) {
  return magnitude_bits(rounded_to(dtype, w)) == kInfinityBits;
}

constexpr float kHalfMax = 65504.0f;
constexpr float kBf16Max = 3.3895314e38f;  // 0x7f7f

/// Clamps w to the finite range: an overflow would make all later gradients non-finite.
MP_DEVICE float clamped(float w, mp_dtype_t dtype) {
  const float most = dtype == MP_FP16 ? kHalfMax : kBf16Max;
  return w > most ? most : w < -most ? -most : w;
}

/// Returns one of the two neighbors of w in the type, or w itself if the type can represent it.
/// The neighbor away from zero has the probability that makes w the mean (fp16 subnormals: to
/// within 2^-32).  Results beyond the largest finite number overflow when they are stored.
/// @param random  32 random bits
MP_DEVICE float stochastically_rounded(float w, mp_dtype_t dtype, uint32_t random) {
  constexpr uint32_t kSmallestNormalHalf = 0x38800000;  // 2^-14
  const uint32_t magnitude = magnitude_bits(w);
  if (magnitude >= kInfinityBits) return w;
  float rounded;
  if (dtype == MP_FP16 && magnitude < kSmallestNormalHalf) {
    const float units = float_from_bits(magnitude) * 0x1p24f;  // the neighbors are 1 apart
    const float below = floorf(units);
    const uint32_t threshold = static_cast<uint32_t>((units - below) * 0x1p32f);
    rounded = (random < threshold ? below + 1.0f : below) * 0x1p-24f;
  } else {
    // A carry out of the dropped bits steps to the next number, even across exponents.
    const uint32_t dropped = dtype == MP_FP16 ? 0x1fff : 0xffff;
    rounded = float_from_bits((magnitude + (random & dropped)) & ~dropped);
  }
  return copysignf(rounded, w);
}

/// Rounds a vector stochastically.  Random numbers depend only on seed, t, tensor and element.
template <class Runs>
MP_DEVICE void round_stochastically(uint64_t seed, const CopyTarget &place, const Runs &runs,
                                    int run, float (&w)[kVec]) {
  // Tensors have less than 2^46 elements, so the high word of at / 4 has 12 bits.
  const uint64_t t = static_cast<uint64_t>(place.t);
  MP_UNROLL
  for (int i = 0; i < kVec; i += 4) {
    const uint64_t quad = static_cast<uint64_t>(runs.at(run, i)) / 4;
    const PhiloxWords random =
        philox({{static_cast<uint32_t>(quad),
                 static_cast<uint32_t>(quad >> 32) | static_cast<uint32_t>(t >> 32) << 12,
                 place.tensor, static_cast<uint32_t>(t)}},
               seed);
    MP_UNROLL
    for (int j = 0; j < 4; j++)
      w[i + j] = stochastically_rounded(w[i + j], place.dtype, random.x[j]);
  }
}

/// Applies the policy to a vector of 8 weights, whose halves begin at multiples of 4.
/// @return number of weights that overflow; 0 if kPlain
template <bool kPlain, class Runs>
MP_DEVICE int apply_policy(const CopyPolicy &policy, const CopyTarget &place, const Runs &runs,
                           int run, float (&w)[kVec]) {
  int count = 0;
  if constexpr (!kPlain) {
    if (policy.flags & MP_OPT_FLAG_STOCHASTIC_ROUNDING)
      round_stochastically(policy.rounding_seed, place, runs, run, w);
    MP_UNROLL
    for (int i = 0; i < kVec; i++) count += runs.has(run, i) && overflows(w[i], place.dtype);
  }
  if ((policy.flags & MP_OPT_FLAG_MODEL_OVERFLOW) == 0) {
    MP_UNROLL
    for (int i = 0; i < kVec; i++) w[i] = clamped(w[i], place.dtype);
  }
  return count;
}

/// Stores the copies of vectors of weights; modifies w.
/// @tparam kPlain  round to nearest and do not count: the common case
/// @return number of copies that overflowed; 0 if kPlain
template <bool kPlain, class Runs>
MP_DEVICE int store_copy(const CopyPolicy &policy, const CopyTarget &place, const Runs &runs,
                         float (&w)[Runs::kRuns][kVec]) {
  int count = 0;
  MP_UNROLL
  for (int run = 0; run < Runs::kRuns; run++)
    count += apply_policy<kPlain>(policy, place, runs, run, w[run]);
  store_vectors(runs, place.dtype, place.model, w);
  return count;
}

/// Adds the counts of a warp to *overflows.  Called by all lanes.
MP_DEVICE void add_overflows(int64_t *overflows, int64_t count) {
  if (overflows == nullptr) return;
  count = warp_reduce<Sum>(count);
  if (lane_index() == 0 && count != 0) atomic_add(overflows, count);
}

/// True if store_copy<true> suffices for the policy.
inline bool is_plain(const CopyPolicy &policy, const int64_t *overflows) {
  return (policy.flags & MP_OPT_FLAG_STOCHASTIC_ROUNDING) == 0 && overflows == nullptr;
}

}  // namespace mp::MP_TARGET
