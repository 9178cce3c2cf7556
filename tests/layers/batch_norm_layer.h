// A batch normalization layer: its data, and its calls on guarded memory.
#pragma once

#include <vector>

#include "tests/support/running_error.h"
#include "tests/support/testing.h"

namespace mptest::batch_norm {

using Vector = std::vector<double>;

constexpr mp_activation_t kActivations[] = {MP_ACT_NONE, MP_ACT_RELU};
/// Sizes around the 4 rows, 8 channels and 64 channels that kernels process at a time.
constexpr int64_t kRows[] = {2, 3, 31, 129, 600, 1700};
constexpr int32_t kChannels[] = {1, 3, 8, 9, 17, 40, 65, 130};

struct Layer {
  mp_batchnorm_desc_t desc;
  int64_t offset = 0;  ///< in elements, from 256-byte alignment
  Matrices x;
  Vector gamma, beta;
  Vector running_mean, running_var;
  bool has_gamma = true, has_beta = true;  ///< false: pass NULL
  bool has_grads = true;                   ///< false: pass NULL for dgamma and dbeta

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
                                  const Layer &layer = {});

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

/// Returns y before the activation.
inline Bounded normalised(double x, const Bounded &mean, const Bounded &inv_std, double gamma,
                          double beta) {
  return (Bounded(x) - mean) * (Bounded(gamma) * inv_std) + beta;
}

}  // namespace mptest::batch_norm
