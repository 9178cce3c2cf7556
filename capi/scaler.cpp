// mpcore/scaler.h: the loss scaler.  Its policy is applied on the device
// (kernels/step/loss_scale.h); here its parameters and saved states are checked and copied.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <memory>

#include "capi/check.h"
#include "capi/defaults.h"
#include "capi/nvtx_payload.h"
#include "capi/objects.h"
#include "kernels/backend.h"
#include "mpcore.h"

namespace mp {

namespace {

constexpr int32_t kMaxHistory = 1 << 24;

// ---------------------------------------------------------------------------- checks

/// A scale to begin with.
void require_scale(float value, const char *name) {
  MP_REQUIRE(is_scale(value), MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " is not positive and finite with a finite reciprocal");
}

/// The backoff policies of some systems have no limits.
void require_limit(float value, const char *name, const mp_scaler_config_t &config) {
  const bool is_absent = value == 0.0f && config.policy == MP_SCALER_BACKOFF;
  if (!is_absent) require_scale(value, name);
}

void require_scale_within(float value, const char *name, const mp_scaler_config_t &config) {
  const float max = config.max_scale > 0.0f ? config.max_scale : FLT_MAX;
  MP_REQUIRE(config.min_scale <= value && value <= max, MP_ERROR_INVALID_ARGUMENT, name, " = ",
             value, " is outside [min_scale, max_scale] = [", config.min_scale, ", ", max, "]");
}

void require_at_least_one(int32_t value, const char *name) {
  MP_REQUIRE(value >= 1, MP_ERROR_INVALID_ARGUMENT, name, " = ", value, " is smaller than 1");
}

void require_decay(double value, const char *name) {
  MP_REQUIRE(value >= 0.0 && value < 1.0, MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " is outside [0, 1)");
}

void require_backoff_factor(double value) {
  MP_REQUIRE(value > 0.0 && value < 1.0, MP_ERROR_INVALID_ARGUMENT, "backoff_factor = ", value,
             " is outside (0, 1)");
}

void check_backoff(const mp_scaler_config_t &config) {
  MP_REQUIRE(config.growth_factor > 1.0 && std::isfinite(config.growth_factor),
             MP_ERROR_INVALID_ARGUMENT, "growth_factor = ", config.growth_factor,
             " is not greater than 1 and finite");
  require_backoff_factor(config.backoff_factor);
  require_at_least_one(config.growth_interval, "growth_interval");
  require_at_least_one(config.hysteresis, "hysteresis");
}

/// Of lognormal and logmax.
void check_statistics(const mp_scaler_config_t &config) {
  require_finite(config.log2_max, "log2_max");
  require_decay(config.beta1, "beta1");
  require_decay(config.beta2, "beta2");
  require_finite(config.overflow_std_dev, "overflow_std_dev");
}

void check_lognormal(const mp_scaler_config_t &config) {
  require_backoff_factor(config.backoff_factor);
  require_at_least_one(config.growth_interval, "growth_interval");
  MP_REQUIRE(config.sigma_floor >= 0.0f && std::isfinite(config.sigma_floor),
             MP_ERROR_INVALID_ARGUMENT, "sigma_floor = ", config.sigma_floor,
             " is negative or not finite");
}

void check_config(const mp_scaler_config_t &config) {
  require_enum(config.policy, "policy", MP_SCALER_STATIC, MP_SCALER_LOGMAX);
  const bool backoff = config.policy == MP_SCALER_BACKOFF;
  require_flags(config.flags,
                backoff ? MP_SCALER_REFILL_EACH_STEP | MP_SCALER_FIRST_STEP_UNCOUNTED : 0, "flags");
  require_not_negative(config.diverged_after, "diverged_after");
  MP_REQUIRE(config.history >= 0 && config.history <= kMaxHistory, MP_ERROR_INVALID_ARGUMENT,
             "history = ", config.history, " is outside [0, ", kMaxHistory, "]");
  require_zero(config.reserved0, "reserved0");
  require_limit(config.min_scale, "min_scale", config);
  require_limit(config.max_scale, "max_scale", config);
  require_scale(config.init_scale, "init_scale");
  require_scale_within(config.init_scale, "init_scale", config);
  if (backoff) check_backoff(config);
  if (config.policy == MP_SCALER_LOGNORMAL) check_lognormal(config);
  if (has_statistics(config.policy)) check_statistics(config);
}

/// A checkpoint is a file, and files rot: whatever would poison every later scale is refused.
void check_state(const mp_scaler_state_t &state, const mp_scaler_config_t &config) {
  MP_REQUIRE(enum_value(state.policy) == enum_value(config.policy), MP_ERROR_INVALID_ARGUMENT,
             "state->policy = ", state.policy, ", but the scaler's is ", config.policy);
  require_scale_within(state.scale, "state->scale", config);
  require_enum(state.status, "state->status", MP_SCALER_OK, MP_SCALER_DIVERGED);
  const int32_t first_tracker = default_scaler_state(config).growth_tracker;
  MP_REQUIRE(state.growth_tracker >= first_tracker, MP_ERROR_INVALID_ARGUMENT,
             "state->growth_tracker = ", state.growth_tracker, " is smaller than ", first_tracker);
  require_not_negative(state.steps, "state->steps");
  require_not_negative(state.skipped, "state->skipped");
  require_not_negative(state.skipped_nan, "state->skipped_nan");
  require_not_negative(state.skipped_in_row, "state->skipped_in_row");
  if (config.policy == MP_SCALER_BACKOFF) {
    require_not_negative(state.hysteresis_left, "state->hysteresis_left");
  }
  if (!has_statistics(config.policy)) return;
  require_finite(state.log2_mean, "state->log2_mean");
  require_finite(state.log2_mean_slow, "state->log2_mean_slow");
  require_finite(state.log2_square_slow, "state->log2_square_slow");
  require_finite(state.headroom, "state->headroom");
  for (const double power : {state.beta1_power, state.beta2_power}) {
    MP_REQUIRE(power >= 0.0 && power <= 1.0, MP_ERROR_INVALID_ARGUMENT,
               "state->beta1_power or beta2_power = ", power, " is outside [0, 1]");
  }
}

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

/// Allocates all that the scaler will ever need.
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

}  // namespace mp

mp_status_t mp_scaler_create(mp_scaler_t *scaler, mp_context_t context,
                             const mp_scaler_config_t *config) {
  return mp::call(__func__, [&] {
    mp::require_pointer(scaler, "scaler");
    auto created = std::make_unique<mp_scaler>();
    created->context = mp::require_context(context);
    created->config = mp::read_struct(config, "config");
    mp::check_config(created->config);

    mp::set_up_memory(*created);
    *scaler = created.release();
  });
}

void mp_scaler_destroy(mp_scaler_t scaler) {
  (void)mp::call(__func__, [&] { delete scaler; });
}

const float *mp_scaler_scale(mp_scaler_t scaler) {
  return scaler != nullptr ? &scaler->device->scale : nullptr;
}

const float *mp_scaler_inv_scale(mp_scaler_t scaler) {
  return scaler != nullptr ? &scaler->device->inv_scale : nullptr;
}

float *mp_scaler_found_inf(mp_scaler_t scaler) {
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
