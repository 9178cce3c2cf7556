#include "batch_norm_layer.h"
#include "tests/support/grad_stats.h"

namespace mptest::batch_norm {

Layer random_layer(mp_dtype_t dtype, int64_t rows, int32_t channels, uint64_t seed, double mean) {
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

Vector random_dy(const Layer &l, uint64_t seed) {
  return random_reals(l.desc.dtype, l.rows() * l.channels(), -3.0, 3.0, seed);
}

mp_batchnorm_tensors_t tensors_of(const DeviceArray &x, const Floats &gamma, const Floats &beta,
                                  const Layer &layer) {
  auto t = initialized<mp_batchnorm_tensors_t>();
  t.x = x.data();
  t.gamma = layer.has_gamma ? gamma.data() : nullptr;
  t.beta = layer.has_beta ? beta.data() : nullptr;
  return t;
}

Trained train(const Layer &l, mp_context_t context) {
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

Gradients run_backward(const Layer &l, const Saved &saved, const Vector &dy, bool in_place) {
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

}  // namespace mptest::batch_norm
