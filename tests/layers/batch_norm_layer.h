// A batch normalization layer: its data, and its calls on guarded memory.
#pragma once

#include <vector>

#include "tests/support/any.h"
#include "tests/support/grad_stats.h"
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
inline Layer random_layer(mp_dtype_t dtype, int64_t rows, int32_t channels, uint64_t seed,
                          double mean = 0.5) {
  Random random(seed);
  Layer layer;
  layer.desc = mp_batchnorm_desc_default(rows, channels, dtype);
  layer.x = Matrices(1, rows, channels);
  for (double &x : layer.x.values) x = round_to(dtype, mean + random.real(-2.0, 2.0));
  layer.gamma = random_reals(MP_FP32, channels, -2.0, 2.0, random);
  layer.beta = random_reals(MP_FP32, channels, -1.0, 1.0, random);
  layer.running_mean = random_reals(MP_FP32, channels, -1.0, 1.0, random);
  layer.running_var = random_reals(MP_FP32, channels, 0.5, 2.0, random);
  return layer;
}

/// Returns gradients of y in [-3, 3).
inline Vector random_dy(const Layer &l, uint64_t seed) {
  return random_reals(l.desc.dtype, l.rows() * l.channels(), -3.0, 3.0, seed);
}

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
inline mp_batchnorm_tensors_t tensors_of(const DeviceArray &x, const Floats &gamma,
                                         const Floats &beta, const Layer &layer) {
  auto t = initialized<mp_batchnorm_tensors_t>();
  t.x = x.data();
  t.gamma = layer.has_gamma ? gamma.data() : nullptr;
  t.beta = layer.has_beta ? beta.data() : nullptr;
  return t;
}

struct Trained {
  Vector y, mean, inv_std, running_mean, running_var;
  bool operator==(const Trained &) const = default;
};

inline Trained train(const Layer &l, mp_context_t context = mptest::context()) {
  const int64_t channels = l.channels();
  const DeviceArray x(l.desc.dtype, l.x.values, l.offset);
  const DeviceArray y(l.desc.dtype, x.size(), l.offset);
  const Floats gamma(l.gamma, l.offset), beta(l.beta, l.offset);
  const Floats running_mean(l.running_mean), running_var(l.running_var);
  const Floats mean(channels, l.offset), inv_std(channels, l.offset);
  const DeviceWorkspace workspace(mp_batchnorm_workspace_size, mptest::context(), &l.desc);
  mp_batchnorm_tensors_t t = tensors_of(x, gamma, beta, l);
  if (l.has_running) t.running_mean = running_mean.data(), t.running_var = running_var.data();
  t.saved_mean = mean.data();
  t.saved_inv_std = inv_std.data();
  t.y = y.data();
  require_ok(mp_batchnorm_forward_training(context, &l.desc, &t, workspace.data(),
                                           workspace.bytes(), kStream));
  return {y.download(), mean.download(), inv_std.download(), running_mean.download(),
          running_var.download()};
}

struct Saved {
  Vector mean, inv_std;
};
struct Gradients {
  Vector dx, dgamma, dbeta;
  bool operator==(const Gradients &) const = default;
};

inline Gradients run_backward(const Layer &l, const Saved &saved, const Vector &dy,
                              bool in_place = false) {
  const DeviceArray x(l.desc.dtype, l.x.values, l.offset);
  const DeviceArray dy_device(l.desc.dtype, dy, l.offset);
  const DeviceArray beside(l.desc.dtype, x.size(), l.offset);
  const DeviceArray &dx = in_place ? dy_device : beside;
  const Floats gamma(l.gamma, l.offset), beta(l.beta, l.offset);
  const Floats mean(saved.mean, l.offset), inv_std(saved.inv_std, l.offset);
  const Floats dgamma(l.channels(), l.offset), dbeta(l.channels(), l.offset);
  const DeviceWorkspace workspace(mp_batchnorm_workspace_size, mptest::context(), &l.desc);
  mp_batchnorm_tensors_t t = tensors_of(x, gamma, beta, l);
  t.saved_mean = mean.data();
  t.saved_inv_std = inv_std.data();
  t.dy = dy_device.data();
  t.dx = dx.data();
  t.dgamma = l.has_grads ? dgamma.data() : nullptr;
  t.dbeta = l.has_grads ? dbeta.data() : nullptr;
  const GradStats stats;
  t.stats = stats.pointers();
  require_ok(
      mp_batchnorm_backward(context(), &l.desc, &t, workspace.data(), workspace.bytes(), kStream));
  Vector stored = dx.download();
  for (const Floats *const vector : {&dgamma, &dbeta}) {
    const Vector values = l.has_grads ? vector->download() : Vector{};
    stored.insert(stored.end(), values.begin(), values.end());
  }
  stats.check(stored);
  return {dx.download(), dgamma.download(), dbeta.download()};
}

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
          if (rows >= 600 && channels != 1 && channels != 9 && channels != 130) continue;
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
