// A batch normalization layer: its data, and its calls on guarded memory.
#pragma once

#include <vector>

#include "tests/support/any.h"
#include "tests/support/running_error.h"
#include "tests/support/testing.h"

namespace mptest::batch_norm {

using Vector = std::vector<double>;

constexpr mp_activation_t kActivations[] = {MP_ACT_NONE, MP_ACT_RELU};

struct Layer {
  mp_batchnorm_desc_t desc;
  int64_t offset = 0;  ///< in elements, from 256-byte alignment
  Matrices x;
  Vector gamma, beta;
  Vector running_mean, running_var;
  bool has_gamma = true, has_beta = true;  ///< false: pass NULL
  bool has_grads = true;                   ///< false: pass NULL for dgamma and dbeta
  bool has_running = true;                 ///< false: pass NULL for the running statistics

  int64_t rows() const { return desc.rows; }
  int64_t channels() const { return desc.channels; }
};

/// Returns a layer with x in [mean - 2, mean + 2).
Layer random_layer(mp_dtype_t dtype, int64_t rows, int32_t channels, uint64_t seed,
                   double mean = 0.5);
/// Returns gradients of y in [-3, 3).
Vector random_dy(const Layer &layer, uint64_t seed);

/// An fp32 array in device memory.
class Floats {
 public:
  explicit Floats(const Vector &values, int64_t offset = 0) : array_(MP_FP32, values, offset) {}
  explicit Floats(int64_t count, int64_t offset = 0) : array_(MP_FP32, count, offset) {}
  float *data() const { return static_cast<float *>(array_.data()); }
  Vector download() const { return array_.download(); }

 private:
  DeviceArray array_;
};

/// Returns the tensors that every pass reads.
mp_batchnorm_tensors_t tensors_of(const DeviceArray &x, const Floats &gamma, const Floats &beta,
                                  const Layer &layer);

struct Trained {
  Vector y, mean, inv_std, running_mean, running_var;
  bool operator==(const Trained &) const = default;
};
Trained train(const Layer &layer, mp_context_t context = mptest::context());

struct Saved {
  Vector mean, inv_std;
};
struct Gradients {
  Vector dx, dgamma, dbeta;
  bool operator==(const Gradients &) const = default;
};
Gradients run_backward(const Layer &layer, const Saved &saved, const Vector &dy,
                       bool in_place = false);

/// Returns an element of y before the activation.
/// @param statistics  of vectors of numbers or of Bounded, one per channel
template <class Statistics>
Bounded normalized(const Layer &l, const Statistics &statistics, int64_t row, int64_t channel) {
  const size_t c = static_cast<size_t>(channel);
  const Bounded gamma = l.has_gamma ? l.gamma[c] : 1.0, beta = l.has_beta ? l.beta[c] : 0.0;
  return (Bounded(l.x.at(0, row, channel)) - Bounded(statistics.mean[c])) *
             (gamma * Bounded(statistics.inv_std[c])) +
         beta;
}

/// Calls check(layer) for sizes around the 4 rows, 8 channels and 64 channels that kernels process
/// at a time.
template <class Check>
void check_shapes(const Check &check) {
  uint64_t seed = 0;
  for (const mp_dtype_t dtype : kDtypes)
    for (const mp_activation_t activation : kActivations)
      for (const int64_t rows : {2, 3, 31, 129, 600, 1700})
        for (const int32_t channels : {1, 3, 8, 9, 17, 40, 65, 130}) {
          Layer l = random_layer(dtype, rows, channels, ++seed);
          l.desc.activation = activation;
          CAPTURE(mp_dtype_name(dtype), activation, rows, channels);
          check(l);
        }
}

/// Calls check(layer) for small layers at any alignment, with and without gamma and beta.
template <class Check>
void check_small(const Check &check) {
  Random random(1000);
  for (const mp_dtype_t dtype : kDtypes)
    for (const int64_t rows : {1, 150})
      for (const int32_t channels : {1, 8, 19, 72})
        for (const int64_t offset : {0, 1, 4}) {
          Layer l = random_layer(dtype, rows, channels, random.bits());
          l.offset = offset;
          l.desc.activation = any(random, kActivations);
          l.has_gamma = !one_in(3, random);
          l.has_beta = !one_in(3, random) || rows == 1;  // one row without beta: z is 0
          CAPTURE(mp_dtype_name(dtype), l.desc.activation, rows, channels, offset, l.has_gamma,
                  l.has_beta);
          check(l);
        }
}

}  // namespace mptest::batch_norm
