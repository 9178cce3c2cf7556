// mpcore/scaler.h: the loss scaler.  Copies configurations and states to and from the device, which
// applies the policy (kernels/step/loss_scale.h).
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <memory>

#include "capi/defaults.h"
#include "capi/nvtx_payload.h"
#include "capi/objects.h"

using namespace mp;

namespace {

// ---------------------------------------------------------------------------- device state

float reciprocal(float scale) {
  return static_cast<float>(1.0 / static_cast<double>(scale));
}

}  // namespace

std::unique_ptr<mp_scaler> mp::make_scaler(const ContextPtr &context,
                                           const mp_scaler_config_t &config) {
  auto created = std::make_unique<mp_scaler>();
  created->context = context;
  created->config = config;
  created->history.resize(static_cast<size_t>(config.history_length));
  ScalerDevice device{};
  DeviceImage image;
  image.add_zeros(created->device);
  if (config.history_length > 0) image.add_zeros(device.history, created->history.size());
  created->memory = image.upload(context);
  created->outcomes.emplace(context);
  created->device_history = device.history;

  device.scale = config.init_scale;
  device.inv_scale = reciprocal(config.init_scale);
  device.config = config;
  device.state = default_scaler_state(config);
  device.outcomes = created->outcomes->device();
  context->backend.copy(context->device, created->device, &device, sizeof device, nullptr);
  context->backend.synchronize(context->device, nullptr);
  return created;
}

mp_status_t mp_scaler_create(mp_scaler_t *scaler, mp_context_t context,
                             const mp_scaler_config_t *config) {
  return call(__func__, [&] {
    require_pointer(scaler, "scaler");
    const ContextPtr owner = require_context(context);
    const mp_scaler_config_t read = read_struct(config, "config");
    check_config(read);
    *scaler = make_scaler(owner, read).release();
  });
}

void mp_scaler_destroy(mp_scaler_t scaler) {
  call_void(__func__, [&] {
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
  return call(__func__, nvtx_payload("count", count), [&] {
    const mp_scaler &s = require_pointer(scaler, "scaler");
    require_dtype(dtype, "dtype");
    require_count(count, "count", dtype);
    if (count == 0) return;
    require_device(loss, "loss", mp_dtype_size(dtype));
    require_device(out, "out", mp_dtype_size(dtype));
    const Context &c = *s.context;
    c.backend.scale_loss(c.device, loss, out, dtype, count, &s.device->scale, stream);
  });
}

mp_status_t mp_scaler_update(mp_scaler_t scaler, const float *amax, mp_stream_t stream) {
  return call(__func__, scaler, "scaler", [&](const Context &c, mp_scaler &s) {
    require_aligned(amax, "amax");
    if (needs_amax(s)) require_pointer(amax, "amax");
    c.backend.scaler_update(c.device, s.device, amax, stream);
    s.has_kept_amax = false;
  });
}

mp_status_t mp_scaler_get_state_sync(mp_scaler_t scaler, mp_scaler_state_t *state,
                                     mp_stream_t stream) {
  return call(__func__, scaler, "scaler", [&](const Context &c, const mp_scaler &s) {
    require_struct(state, "state");
    mp_scaler_state_t value;
    c.backend.copy(c.device, &value, &s.device->state, sizeof value, stream);
    c.backend.synchronize(c.device, stream);
    write_struct(state, "state", value);
  });
}

mp_status_t mp_scaler_set_state_sync(mp_scaler_t scaler, const mp_scaler_state_t *state,
                                     mp_stream_t stream) {
  return call(__func__, scaler, "scaler", [&](const Context &c, mp_scaler &s) {
    const mp_scaler_state_t value = read_struct(state, "state");
    check_state(value, s.config);
    const float inv_scale = reciprocal(value.scale);
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
  return call(__func__, scaler, "scaler", [&](const Context &c, mp_scaler &s) {
    require_not_negative(capacity, "capacity");
    require_pointer(count, "count");
    int64_t recorded;
    c.backend.copy(c.device, &recorded, &s.device->num_recorded, sizeof recorded, stream);
    if (!s.history.empty()) {
      c.backend.copy(c.device, s.history.data(), s.device_history,
                     s.history.size() * sizeof(ScalerRecord), stream);
    }
    c.backend.synchronize(c.device, stream);

    const int64_t given = std::min({recorded, int64_t{s.config.history_length}, capacity});
    for (int64_t i = 0; i < given; i++) {
      const int64_t slot = (recorded - given + i) % s.config.history_length;
      const ScalerRecord &record = s.history[static_cast<size_t>(slot)];
      if (scales != nullptr) scales[i] = record.scale;
      if (skipped != nullptr) skipped[i] = record.skipped;
    }
    *count = given;
  });
}

void mp::require_scale(float value, const char *name) {
  MP_REQUIRE(is_scale(value), MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " must be positive and finite, with a finite reciprocal");
}

namespace {

void require_scale_within(float value, const char *name, const mp_scaler_config_t &config) {
  const float max = config.max_scale > 0.0f ? config.max_scale : FLT_MAX;
  MP_REQUIRE(config.min_scale <= value && value <= max, MP_ERROR_INVALID_ARGUMENT, name, " = ",
             value, " is outside [min_scale, max_scale] = [", config.min_scale, ", ", max, "]");
}

// ---------------------------------------------------------------------------- checks of a config

constexpr int32_t kMaxHistory = 1 << 24;

/// Checks min_scale or max_scale; 0 = no limit, as in the backoff policies of some systems.
void require_limit(float value, const char *name, const mp_scaler_config_t &config) {
  const bool is_absent = value == 0.0f && config.policy == MP_SCALER_POLICY_BACKOFF;
  if (!is_absent) require_scale(value, name);
}

void require_backoff_factor(double value, const char *prefix) {
  MP_REQUIRE(value > 0.0 && value < 1.0, MP_ERROR_INVALID_ARGUMENT, prefix,
             "backoff_factor = ", value, " is outside (0, 1)");
}

/// Checks the parameters of lognormal and logmax.
void check_statistics(const mp_scaler_config_t &config) {
  require_finite(config.log2_max, "log2_max");
  MP_CHECK_FIELDS(require_fraction, config, beta1, beta2);
  require_finite(config.overflow_std_dev, "overflow_std_dev");
}

}  // namespace

void mp::check_growth(const mp_scaler_config_t &config, const char *prefix) {
  MP_REQUIRE(config.growth_factor > 1.0 && std::isfinite(config.growth_factor),
             MP_ERROR_INVALID_ARGUMENT, prefix, "growth_factor = ", config.growth_factor,
             " must be greater than 1 and finite");
  require_backoff_factor(config.backoff_factor, prefix);
  require_positive(config.growth_interval, Message(prefix, "growth_interval").c_str());
}

void mp::check_config(const mp_scaler_config_t &config) {
  require_enum(config.policy, "policy");
  const bool backoff = config.policy == MP_SCALER_POLICY_BACKOFF;
  require_flags(config.flags,
                backoff ? MP_SCALER_FLAG_REFILL_EACH_STEP | MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED : 0,
                "flags");
  require_not_negative(config.max_consecutive_skips, "max_consecutive_skips");
  require_within(config.history_length, "history_length", 0, kMaxHistory);
  require_zero(config.reserved0, "reserved0");
  require_limit(config.min_scale, "min_scale", config);
  require_limit(config.max_scale, "max_scale", config);
  require_scale(config.init_scale, "init_scale");
  require_scale_within(config.init_scale, "init_scale", config);
  if (backoff) {
    check_growth(config, "");
    require_positive(config.hysteresis, "hysteresis");
  }
  if (config.policy == MP_SCALER_POLICY_LOGNORMAL) {
    require_backoff_factor(config.backoff_factor, "");
    require_positive(config.growth_interval, "growth_interval");
    MP_REQUIRE(config.sigma_floor >= 0.0f && std::isfinite(config.sigma_floor),
               MP_ERROR_INVALID_ARGUMENT, "sigma_floor = ", config.sigma_floor,
               " is negative or not finite");
  }
  if (has_statistics(config.policy)) check_statistics(config);
}

// ---------------------------------------------------------------------------- checks of a state

namespace {

/// @param end_name  name of the field with the value `end`
void require_count_within(int64_t value, const char *name, int64_t end, const char *end_name) {
  MP_REQUIRE(value >= 0 && value <= end, MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " is outside [0, ", end_name, "] = [0, ", end, "]");
}

/// Checks that each counter is at most the counter of which it counts a part, such as overflows of
/// skipped.
void check_counts(const mp_scaler_state_t &state) {
  require_count_within(state.steps, "state->steps", kMaxSteps, "2^52");
  require_count_within(state.skipped, "state->skipped", state.steps, "steps");
  require_count_within(state.overflows, "state->overflows", state.skipped, "skipped");
  require_count_within(state.out_of_range, "state->out_of_range", state.skipped, "skipped");
  require_count_within(state.no_scale, "state->no_scale", state.skipped, "skipped");
  require_unset(state.spikes, "state->spikes");
  const int64_t skips = state.overflows + state.out_of_range + state.no_scale;
  MP_REQUIRE(skips == state.skipped, MP_ERROR_INVALID_ARGUMENT, "state->skipped = ", state.skipped,
             " must be overflows + spikes + out_of_range + no_scale = ", skips);
  require_count_within(state.skipped_nan, "state->skipped_nan", state.overflows, "overflows");
  require_count_within(state.consecutive_skips, "state->consecutive_skips", state.skipped,
                       "skipped");
}

/// Checks a decayed mean of samples in [least, most], without bias correction.
/// @param power  beta^samples: weight of the initial 0; the samples have weight 1 - power
void require_mean(float mean, const char *name, double power, const char *power_name, double least,
                  double most) {
  const double samples = 1.0 - power;
  MP_REQUIRE(mean >= least * samples && mean <= most * samples, MP_ERROR_INVALID_ARGUMENT, name,
             " = ", mean, " must be in [", least * samples + 0.0, ", ", most * samples, "] with ",
             power_name, " = ", power);
}

/// A sample is log2 of the largest scaled gradient minus log2 S.  Both numbers are between 2^-149
/// and 2^128, so |sample| <= 277.  A mean outside this range would keep S at a limit for thousands
/// of steps.
void check_log2_statistics(const mp_scaler_state_t &state) {
  constexpr double kMax = 300.0;  // margin for rounding of the means in every step
  require_mean(state.log2_mean, "state->log2_mean", state.beta1_power, "beta1_power", -kMax, kMax);
  require_mean(state.log2_mean_slow, "state->log2_mean_slow", state.beta2_power, "beta2_power",
               -kMax, kMax);
  require_mean(state.log2_square_slow, "state->log2_square_slow", state.beta2_power, "beta2_power",
               0.0, kMax * kMax);
}

/// A negative variance is accepted: rounding can cause it in valid statistics; sigma is then 0.
void check_statistics(const mp_scaler_state_t &state, const mp_scaler_config_t &config) {
  require_finite(state.log2_mean, "state->log2_mean");
  require_finite(state.log2_mean_slow, "state->log2_mean_slow");
  require_finite_not_negative(state.log2_square_slow, "state->log2_square_slow");
  require_within(state.beta1_power, "state->beta1_power", 0.0, 1.0);
  require_within(state.beta2_power, "state->beta2_power", 0.0, 1.0);
  require_finite_not_negative(state.headroom, "state->headroom");
  // Samples of logmax are unbounded: an overflow counts as 2^log2_max.
  if (config.policy == MP_SCALER_POLICY_LOGNORMAL) check_log2_statistics(state);
}

}  // namespace

void mp::require_growth_tracker(int32_t tracker, const char *prefix, int32_t first,
                                int32_t interval) {
  MP_REQUIRE(tracker >= first && tracker < interval, MP_ERROR_INVALID_ARGUMENT, prefix,
             "growth_tracker = ", tracker, " is outside [", first, ", growth_interval) = [", first,
             ", ", interval, ")");
}

// Checkpoints can be corrupt.  States that no scaler produces are rejected, because most of them
// would affect every later scale.
void mp::check_state(const mp_scaler_state_t &state, const mp_scaler_config_t &config) {
  MP_REQUIRE(enum_value(state.policy) == enum_value(config.policy), MP_ERROR_INVALID_ARGUMENT,
             "state->policy = ", state.policy, " must equal the scaler's policy, ", config.policy);
  require_scale_within(state.scale, "state->scale", config);
  // status follows from consecutive_skips and max_consecutive_skips, which may have changed.
  require_enum(state.status, "state->status");
  check_counts(state);
  const int32_t first_tracker = default_scaler_state(config).growth_tracker;
  switch (config.policy) {
    case MP_SCALER_POLICY_BACKOFF:
      require_growth_tracker(state.growth_tracker, "state->", first_tracker,
                             config.growth_interval);
      require_count_within(state.hysteresis_left, "state->hysteresis_left", config.hysteresis,
                           "hysteresis");
      break;
    case MP_SCALER_POLICY_LOGNORMAL:
      require_growth_tracker(state.growth_tracker, "state->", first_tracker,
                             config.growth_interval);
      break;
    case MP_SCALER_POLICY_STATIC:
    case MP_SCALER_POLICY_LOGMAX:
      require_not_negative(state.growth_tracker, "state->growth_tracker");
  }
  if (has_statistics(config.policy)) check_statistics(state, config);
}
