// A network in which all sums are exact, so that the results are bit-identical for any number of
// ranks.
//
//   z = x W1    h = sign(z)    y = h W2    loss = sum |y - target|
//
// GEMMs use only the signs of the weights, and gradients pass through both sign functions unchanged
// (through the second one if |z| is small).  So x, z, h, y and the gradients over S are small
// integers for any weights: fp32 masters and their fp16 copies, as in other networks.
//
// Source: Courbariaux et al., Binarized Neural Networks, 2016, section 1.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "support/device.h"

namespace mptest {

constexpr int64_t kSamples = 16;  ///< total of all ranks
constexpr int64_t kIn = 16, kHidden = 32, kOut = 8;
constexpr std::array<int64_t, 2> kNumels = {kIn * kHidden, kHidden *kOut};
/// Largest S: a gradient is at most 8 S, and the maximum of fp16 is 65504.
constexpr float kMaxScale = 4096.0f;

/// Overflow in a step: a sample of one of the ranks.
struct Overflow {
  enum Kind {
    kNone,
    kInfinity,
    kNan,
    /// An activation gradient that an epilogue detects and that does not affect the gradients of
    /// the weights: the other ranks receive it only by mp_step_options.comm.
    kUnseen
  } kind;
  int64_t sample;
};

/// Data of a step, derived from seed and step, equal on every rank.
struct Batch {
  std::vector<double> x, target;  ///< all samples
  Overflow overflow;
};
Batch batch_of(uint64_t seed, int64_t step);

class Network {
 public:
  /// @param first,count  samples of this rank
  Network(mp_context_t context, int64_t first, int64_t count);

  /// Returns the sum of this rank's losses; gradients are those of S times the mean over its
  /// samples.
  /// @param models  fp16 weights
  /// @param grads   fp16
  int64_t forward_backward(const Batch &batch, const std::array<const uint16_t *, 2> &models,
                           const std::array<uint16_t *, 2> &grads, mp_scaler_t scaler);

 private:
  int64_t load_loss_gradient(const Batch &batch, float scale);
  void overflow_unseen(mp_scaler_t scaler);
  bool owns(int64_t sample) const { return sample >= first_ && sample < first_ + count_; }

  mp_context_t context_;
  int64_t first_, count_;
  mptools::Buffer x_, w1_, z_, h_, w2_, y_, dy_, dz_;
};

}  // namespace mptest
