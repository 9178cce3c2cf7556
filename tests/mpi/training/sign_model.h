// A model in which all sums are exact, so that the results are bit-identical for any number of
// ranks.
//
// Each sample has a wanted sign for each weight.  The loss is the number of weights with the other
// sign.  The gradient of a weight over S is minus the mean of its wanted signs, or 0 for a large
// weight: integers over a power of two, as in binarized networks.
//
// Source: Courbariaux et al., Binarized Neural Networks, 2016, section 1.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "support/device.h"
#include "tests/support/input_values.h"
#include "tests/support/numeric.h"

namespace mptest {

constexpr uint64_t kSeed = 1;
constexpr int64_t kSamples = 16;  ///< total of all ranks
constexpr std::array<int64_t, 2> kNumels = {512, 256};
constexpr int64_t kWeights = kNumels[0] + kNumels[1];
/// Largest |weight| with a gradient.
constexpr double kGate = 0.25;
/// Largest S: gradients over S are at most 1, and the maximum of fp16 is 65504.
constexpr float kMaxScale = 4096.0f;

/// Overflow in a step: a sample of one of the ranks.
struct Overflow {
  enum Kind {
    kNone,
    kInfinity,
    kNan,
    /// Detected on one rank without an effect on the gradients, like an overflow in an activation:
    /// the other ranks receive it only by mp_step_options.comm.
    kUnseen
  } kind;
  int64_t sample;
};

/// Data of a step, equal on every rank.
struct Batch {
  std::vector<int> wanted;  ///< [sample][weight], 1 or -1
  Overflow overflow;
};

inline std::vector<int> signs(Random &random, int64_t count) {
  std::vector<int> values(static_cast<size_t>(count));
  for (int &value : values) value = random.integer(0, 1) == 0 ? -1 : 1;
  return values;
}

/// Returns samples that differ from random signs, equal in all steps, in about a quarter of the
/// weights.
inline Batch batch_of(int64_t step) {
  constexpr size_t kFeatures = 16;
  constexpr int64_t kStepsPerOverflow = 6;
  Random usual_signs(kSeed), random(kSeed * 1000003 + static_cast<uint64_t>(step));
  const std::vector<int> usual = signs(usual_signs, kWeights);
  Batch batch;
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    const std::vector<int> x = signs(random, kFeatures);
    for (size_t w = 0; w < usual.size(); ++w) {
      const bool differs = x[w % kFeatures] < 0 && x[w / kFeatures % kFeatures] < 0;
      batch.wanted.push_back(differs ? -usual[w] : usual[w]);
    }
  }
  const bool overflows = random.integer(1, kStepsPerOverflow) == 1;
  const int64_t kind = random.integer(Overflow::kInfinity, Overflow::kUnseen);
  batch.overflow.kind = overflows ? static_cast<Overflow::Kind>(kind) : Overflow::kNone;
  batch.overflow.sample = random.integer(0, kSamples - 1);
  return batch;
}

/// Computes S times the mean gradient over the samples of this rank; returns their loss.
/// @param models  fp16 weights
/// @param grads   fp16
inline int64_t compute_gradients(const Batch &batch, int64_t first, int64_t count,
                                 const std::array<const uint16_t *, 2> &models,
                                 const std::array<uint16_t *, 2> &grads, mp_scaler_t scaler) {
  const double scale = *mp_scaler_get_scale_address(scaler) / static_cast<double>(count);
  int64_t loss = 0, weight = 0;
  for (size_t t = 0; t < kNumels.size(); ++t)
    for (int64_t i = 0; i < kNumels[t]; ++i, ++weight) {
      const double value = decode(MP_FP16, models[t][i]);
      int64_t wanted = 0;
      for (int64_t sample = first; sample < first + count; ++sample)
        wanted += batch.wanted[static_cast<size_t>(sample * kWeights + weight)];
      loss += (count - (value < 0 ? -wanted : wanted)) / 2;
      const double gradient = std::abs(value) > kGate ? 0 : -scale * static_cast<double>(wanted);
      grads[t][i] = static_cast<uint16_t>(encode(MP_FP16, gradient));
    }
  const Overflow overflow = batch.overflow;
  if (overflow.sample < first || overflow.sample >= first + count) return loss;
  if (overflow.kind == Overflow::kUnseen) *mp_scaler_get_found_inf_address(scaler) = 1.0f;
  if (overflow.kind == Overflow::kInfinity || overflow.kind == Overflow::kNan)
    grads[1][overflow.sample] = static_cast<uint16_t>(
        encode(MP_FP16, overflow.kind == Overflow::kNan ? std::nan("") : HUGE_VAL));
  return loss;
}

}  // namespace mptest
