// A network whose every sum is exact, so that four ranks have the bits of one.
//
//   z = x W1    h = sign(z)    y = h W2    loss = sum |y - target|
//
// The products see the signs of the weights alone, and the gradients pass through both signs as if
// they were not there (through the second one where |z| is small).  So x, z, h, y and the gradients
// over S are small integers, whatever the optimizer makes of the weights behind the signs: fp32
// masters and their fp16 copies, which are as real as in any network.
//
// Source: Courbariaux et al., Binarized Neural Networks, 2016, section 1.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "support/device.h"

namespace mptest {

constexpr int64_t kSamples = 16;  ///< of all ranks together
constexpr int64_t kIn = 16, kHidden = 32, kOut = 8;
constexpr std::array<int64_t, 2> kNumels = {kIn * kHidden, kHidden *kOut};
/// The largest S: a gradient is at most 8 S, and fp16 ends at 65504.
constexpr float kMaxScale = 4096.0f;

/// What overflows in a step, in all ranks together: a sample of one of them.
struct Overflow {
  enum Kind {
    kNone,
    kInfinity,
    kNan,
    /// An activation gradient that an epilogue notices, and that leaves no trace in the gradients
    /// of the weights: the other ranks learn of it by mp_step_options.comm alone.
    kUnseen
  } kind;
  int64_t sample;
};

/// What a step sees; it follows from seed and step, on every rank alike.
struct Batch {
  std::vector<double> x, target;  ///< of all samples
  Overflow overflow;
};
Batch batch_of(uint64_t seed, int64_t step);

class Network {
 public:
  /// @param first,count  the samples of this rank
  Network(mp_context_t context, int64_t first, int64_t count);

  /// The sum of this rank's losses; gradients are those of S times the mean over its samples.
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
