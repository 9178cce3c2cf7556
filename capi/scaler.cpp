// Section 7 of mpcore.h: the loss scaler.  Its policy is applied on the device
// (kernels/step/loss_scale.h); here its parameters and saved states are checked and copied.
#include <cmath>
#include <cstddef>
#include <memory>

#include "capi/check.h"
#include "capi/objects.h"
#include "kernels/kernels.h"
#include "mpcore.h"

namespace mp {

namespace {

// ---------------------------------------------------------------------------- checks

/// A value S may take: 1/S must be a number too.
void require_scale(float value, const char *name) {
  MP_REQUIRE(value > 0.0f && std::isfinite(value) && std::isfinite(1.0f / value),
             MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " is not positive and finite with a finite reciprocal");
}

void require_scale_within(float value, const char *name, const mp_scaler_config_t &config) {
  MP_REQUIRE(config.min_scale <= value && value <= config.max_scale, MP_ERROR_INVALID_ARGUMENT,
             name, " = ", value, " is outside [min_scale, max_scale] = [", config.min_scale, ", ",
             config.max_scale, "]");
}

void require_at_least_one(int32_t value, const char *name) {
  MP_REQUIRE(value >= 1, MP_ERROR_INVALID_ARGUMENT, name, " = ", value, " is smaller than 1");
}

void require_decay(float value, const char *name) {
  MP_REQUIRE(value >= 0.0f && value < 1.0f, MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " is outside [0, 1)");
}

void require_backoff_factor(float value) {
  MP_REQUIRE(value > 0.0f && value < 1.0f, MP_ERROR_INVALID_ARGUMENT, "backoff_factor = ", value,
             " is outside (0, 1)");
}

void check_backoff(const mp_scaler_config_t &config) {
  MP_REQUIRE(config.growth_factor > 1.0f && std::isfinite(config.growth_factor),
             MP_ERROR_INVALID_ARGUMENT, "growth_factor = ", config.growth_factor,
             " is not greater than 1 and finite");
  require_backoff_factor(config.backoff_factor);
  require_at_least_one(config.growth_interval, "growth_interval");
  require_at_least_one(config.hysteresis, "hysteresis");
}

void check_lognormal(const mp_scaler_config_t &config) {
  require_backoff_factor(config.backoff_factor);
  require_at_least_one(config.growth_interval, "growth_interval");
  require_finite(config.log2_max, "log2_max");
  require_decay(config.beta1, "beta1");
  require_decay(config.beta2, "beta2");
  require_finite(config.overflow_std_dev, "overflow_std_dev");
  MP_REQUIRE(config.sigma_floor >= 0.0f && std::isfinite(config.sigma_floor),
             MP_ERROR_INVALID_ARGUMENT, "sigma_floor = ", config.sigma_floor,
             " is negative or not finite");
}

void check_config(const mp_scaler_config_t &config) {
  require_enum(config.policy, "policy", MP_SCALER_STATIC, MP_SCALER_LOGNORMAL);
  const bool backoff = config.policy == MP_SCALER_BACKOFF;
  require_flags(config.flags, backoff ? uint32_t{MP_SCALER_REFILL_EACH_STEP} : 0u, "flags");
  require_scale(config.min_scale, "min_scale");
  require_scale(config.max_scale, "max_scale");
  require_scale_within(config.init_scale, "init_scale", config);
  if (backoff) check_backoff(config);
  if (config.policy == MP_SCALER_LOGNORMAL) check_lognormal(config);
}

/// A checkpoint is a file, and files rot: whatever would poison every later scale is refused.
void check_state(const mp_scaler_state_t &state, const mp_scaler_config_t &config) {
  MP_REQUIRE(enum_value(state.policy) == enum_value(config.policy), MP_ERROR_INVALID_ARGUMENT,
             "state->policy = ", state.policy, ", but the scaler's is ", config.policy);
  require_scale_within(state.scale, "state->scale", config);
  require_zero(state.reserved0, "state->reserved0");
  require_not_negative(state.growth_tracker, "state->growth_tracker");
  require_not_negative(state.steps, "state->steps");
  require_not_negative(state.skipped, "state->skipped");
  if (config.policy == MP_SCALER_BACKOFF) {
    require_not_negative(state.hysteresis_left, "state->hysteresis_left");
  }
  if (config.policy != MP_SCALER_LOGNORMAL) return;
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
  MP_INIT_STRUCT(&device.state);
  device.state.policy = config.policy;
  device.state.scale = config.init_scale;
  device.state.hysteresis_left = config.hysteresis;
  device.state.beta1_power = 1.0;
  device.state.beta2_power = 1.0;
  return device;
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

    const mp::ScalerDevice device = mp::initial_device(created->config);
    mp::DeviceImage image;
    const size_t offset = image.add(&device, 1);
    created->memory = image.upload(created->context);
    created->device = mp::array_at<mp::ScalerDevice>(created->memory, offset);
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
  return mp::call(__func__, [&] {
    const mp_scaler &s = mp::require_pointer(scaler, "scaler");
    mp::require_dtype(dtype, "dtype");
    mp::require_count(count, "count", dtype);
    if (count == 0) return;
    mp::require_device(loss, "loss", mp_dtype_size(dtype));
    mp::require_device(out, "out", mp_dtype_size(dtype));
    const mp::Context &c = *s.context;
    c.target.scale_loss(c.device, loss, out, dtype, count, &s.device->scale, stream);
  });
}

mp_status_t mp_scaler_update(mp_scaler_t scaler, const float *amax, mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp_scaler &s = mp::require_pointer(scaler, "scaler");
    if (s.config.policy == MP_SCALER_LOGNORMAL) {
      mp::require_device(amax, "amax");
    } else {
      MP_REQUIRE(amax == nullptr, MP_ERROR_INVALID_ARGUMENT, "amax = ", amax,
                 ", but only MP_SCALER_LOGNORMAL looks at it");
    }
    const mp::Context &c = *s.context;
    c.target.scaler_update(c.device, s.device, amax, stream);
  });
}

mp_status_t mp_scaler_get_state_sync(mp_scaler_t scaler, mp_scaler_state_t *state,
                                     mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp_scaler &s = mp::require_pointer(scaler, "scaler");
    mp::require_struct(state, "state");
    const mp::Context &c = *s.context;
    mp_scaler_state_t value;
    c.target.copy(c.device, &value, &s.device->state, sizeof value, stream);
    c.target.synchronize(c.device, stream);
    mp::write_struct(state, "state", value);
  });
}

mp_status_t mp_scaler_set_state_sync(mp_scaler_t scaler, const mp_scaler_state_t *state,
                                     mp_stream_t stream) {
  return mp::call(__func__, [&] {
    const mp_scaler &s = mp::require_pointer(scaler, "scaler");
    const mp_scaler_state_t value = mp::read_struct(state, "state");
    mp::check_state(value, s.config);
    const float inv_scale = mp::reciprocal(value.scale);
    const mp::Context &c = *s.context;
    c.target.copy(c.device, &s.device->scale, &value.scale, sizeof value.scale, stream);
    c.target.copy(c.device, &s.device->inv_scale, &inv_scale, sizeof inv_scale, stream);
    c.target.copy(c.device, &s.device->state, &value, sizeof value, stream);
    c.target.synchronize(c.device, stream);
  });
}
