// mpcore/scaler.h: the loss scaler.  Copies configurations and states to and from the device, which
// applies the policy (kernels/step/loss_scale.h).
#include <algorithm>
#include <cstddef>
#include <memory>

#include "capi/check.h"
#include "capi/defaults.h"
#include "capi/nvtx_payload.h"
#include "capi/objects.h"
#include "capi/scaler_checks.h"
#include "kernels/backend.h"
#include "mpcore.h"

namespace mp {

namespace {

// ---------------------------------------------------------------------------- device state

float reciprocal(float scale) {
  return static_cast<float>(1.0 / static_cast<double>(scale));
}

ScalerDevice initial_device(const mp_scaler_config_t &config) {
  ScalerDevice device{};
  device.scale = config.init_scale;
  device.inv_scale = reciprocal(config.init_scale);
  device.config = config;
  device.state = default_scaler_state(config);
  return device;
}

void set_up_memory(mp_scaler &scaler) {
  const size_t records = static_cast<size_t>(scaler.config.history);
  DeviceImage image;
  const size_t device_at = image.add_zeros<ScalerDevice>(1);
  const size_t history_at = image.add_zeros<ScalerRecord>(records);
  scaler.memory = image.upload(scaler.context);
  scaler.device = array_at<ScalerDevice>(scaler.memory, device_at);
  scaler.history.resize(records);
  scaler.outcomes.emplace(scaler.context);

  ScalerDevice device = initial_device(scaler.config);
  device.outcomes = scaler.outcomes->device();
  if (records > 0) device.history = array_at<ScalerRecord>(scaler.memory, history_at);
  scaler.device_history = device.history;
  const Context &c = *scaler.context;
  c.backend.copy(c.device, scaler.device, &device, sizeof device, nullptr);
  c.backend.synchronize(c.device, nullptr);
}

}  // namespace

std::unique_ptr<mp_scaler> make_scaler(const ContextPtr &context,
                                       const mp_scaler_config_t &config) {
  auto created = std::make_unique<mp_scaler>();
  created->context = context;
  created->config = config;
  set_up_memory(*created);
  return created;
}

}  // namespace mp

mp_status_t mp_scaler_create(mp_scaler_t *scaler, mp_context_t context,
                             const mp_scaler_config_t *config) {
  return mp::call(__func__, [&] {
    mp::require_pointer(scaler, "scaler");
    const mp::ContextPtr owner = mp::require_context(context);
    const mp_scaler_config_t read = mp::read_struct(config, "config");
    mp::check_config(read);
    *scaler = mp::make_scaler(owner, read).release();
  });
}

void mp_scaler_destroy(mp_scaler_t scaler) {
  mp::call_void(__func__, [&] {
    if (scaler != nullptr && !scaler->is_owned) delete scaler;
  });
}

const float *mp_scaler_get_scale_address(mp_scaler_t scaler) {
  return scaler != nullptr ? &scaler->device->scale : nullptr;
}

const float *mp_scaler_get_inv_scale_address(mp_scaler_t scaler) {
  return scaler != nullptr ? &scaler->device->inv_scale : nullptr;
}

float *mp_scaler_get_found_inf_address(mp_scaler_t scaler) {
  return scaler != nullptr ? &scaler->device->found_inf : nullptr;
}

mp_status_t mp_scale_loss(mp_scaler_t scaler, const void *loss, void *out, mp_dtype_t dtype,
                          int64_t count, mp_stream_t stream) {
  return mp::call(__func__, mp::nvtx_payload("count", count), [&] {
    const mp_scaler &s = mp::require_pointer(scaler, "scaler");
    mp::require_dtype(dtype, "dtype");
    mp::require_count(count, "count", dtype);
    if (count == 0) return;
    mp::require_device(loss, "loss", mp_dtype_size(dtype));
    mp::require_device(out, "out", mp_dtype_size(dtype));
    const mp::Context &c = *s.context;
    c.backend.scale_loss(c.device, loss, out, dtype, count, &s.device->scale, stream);
  });
}

mp_status_t mp_scaler_update(mp_scaler_t scaler, const float *amax, mp_stream_t stream) {
  return mp::call(__func__, [&] {
    mp_scaler &s = mp::require_pointer(scaler, "scaler");
    mp::require_aligned(amax, "amax");
    if (mp::needs_amax(s)) mp::require_pointer(amax, "amax");
    const mp::Context &c = *s.context;
    c.backend.scaler_update(c.device, s.device, amax, stream);
    s.has_kept_amax = false;
  });
}

mp_status_t mp_scaler_get_state_sync(mp_scaler_t scaler, mp_scaler_state_t *state,
                                     mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp_scaler &s = mp::require_pointer(scaler, "scaler");
    mp::require_struct(state, "state");
    const mp::Context &c = *s.context;
    mp_scaler_state_t value;
    c.backend.copy(c.device, &value, &s.device->state, sizeof value, stream);
    c.backend.synchronize(c.device, stream);
    mp::write_struct(state, "state", value);
  });
}

mp_status_t mp_scaler_set_state_sync(mp_scaler_t scaler, const mp_scaler_state_t *state,
                                     mp_stream_t stream) {
  return mp::call(__func__, [&] {
    mp_scaler &s = mp::require_pointer(scaler, "scaler");
    const mp_scaler_state_t value = mp::read_struct(state, "state");
    mp::check_state(value, s.config);
    const float inv_scale = mp::reciprocal(value.scale);
    const mp::Context &c = *s.context;
    c.backend.copy(c.device, &s.device->scale, &value.scale, sizeof value.scale, stream);
    c.backend.copy(c.device, &s.device->inv_scale, &inv_scale, sizeof inv_scale, stream);
    c.backend.copy(c.device, &s.device->state, &value, sizeof value, stream);
    // Results since the last update belong to steps that the restored state discards.
    c.backend.fill(c.device, &s.device->found_inf, 0, sizeof s.device->found_inf, stream);
    c.backend.fill(c.device, &s.device->amax, 0, sizeof s.device->amax, stream);
    c.backend.fill(c.device, &s.device->out_of_range, 0, sizeof s.device->out_of_range, stream);
    s.has_kept_amax = false;
    const int64_t none = 0;
    c.backend.copy(c.device, &s.device->num_recorded, &none, sizeof none, stream);
    c.backend.synchronize(c.device, stream);
    s.outcomes->restart(value.steps);
  });
}

mp_status_t mp_scaler_get_history_sync(mp_scaler_t scaler, int64_t capacity, float *scales,
                                       int32_t *skipped, int64_t *count, mp_stream_t stream) {
  return mp::call(__func__, [&] {
    mp_scaler &s = mp::require_pointer(scaler, "scaler");
    mp::require_not_negative(capacity, "capacity");
    mp::require_pointer(count, "count");
    const mp::Context &c = *s.context;
    int64_t recorded;
    c.backend.copy(c.device, &recorded, &s.device->num_recorded, sizeof recorded, stream);
    if (!s.history.empty()) {
      c.backend.copy(c.device, s.history.data(), s.device_history,
                     s.history.size() * sizeof(mp::ScalerRecord), stream);
    }
    c.backend.synchronize(c.device, stream);

    const int64_t given = std::min({recorded, int64_t{s.config.history}, capacity});
    for (int64_t i = 0; i < given; i++) {
      const int64_t slot = (recorded - given + i) % s.config.history;
      const mp::ScalerRecord &record = s.history[static_cast<size_t>(slot)];
      if (scales != nullptr) scales[i] = record.scale;
      if (skipped != nullptr) skipped[i] = record.skipped;
    }
    *count = given;
  });
}
