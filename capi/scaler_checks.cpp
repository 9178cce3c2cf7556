// See scaler_checks.h.
#include "capi/scaler_checks.h"

#include <cfloat>
#include <cmath>

#include "capi/check.h"
#include "capi/defaults.h"
#include "capi/objects.h"

namespace mp {

void require_scale(float value, const char *name) {
  MP_REQUIRE(is_scale(value), MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " must be positive and finite, with a finite reciprocal");
}

namespace {

void require_scale_within(float value, const char *name, const mp_scaler_config_t &config) {
  const float max = config.max_scale > 0.0f ? config.max_scale : FLT_MAX;
  MP_REQUIRE(config.min_scale <= value && value <= max, MP_ERROR_INVALID_ARGUMENT, name, " = ",
             value, " is outside [min_scale, max_scale] = [", config.min_scale, ", ", max, "]");
}

// ---------------------------------------------------------------------------- config

constexpr int32_t kMaxHistory = 1 << 24;

/// Checks min_scale or max_scale; 0 = no limit, as in the backoff policies of some systems.
void require_limit(float value, const char *name, const mp_scaler_config_t &config) {
  const bool is_absent = value == 0.0f && config.policy == MP_SCALER_POLICY_BACKOFF;
  if (!is_absent) require_scale(value, name);
}

void require_at_least_one(int32_t value, const char *prefix, const char *name) {
  MP_REQUIRE(value >= 1, MP_ERROR_INVALID_ARGUMENT, prefix, name, " = ", value,
             " must be at least 1");
}

void require_decay(double value, const char *name) {
  MP_REQUIRE(value >= 0.0 && value < 1.0, MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " is outside [0, 1)");
}

void require_backoff_factor(double value, const char *prefix) {
  MP_REQUIRE(value > 0.0 && value < 1.0, MP_ERROR_INVALID_ARGUMENT, prefix,
             "backoff_factor = ", value, " is outside (0, 1)");
}

/// Checks the parameters of lognormal and logmax.
void check_statistics(const mp_scaler_config_t &config) {
  require_finite(config.log2_max, "log2_max");
  require_decay(config.beta1, "beta1");
  require_decay(config.beta2, "beta2");
  require_finite(config.overflow_std_dev, "overflow_std_dev");
}

void check_lognormal(const mp_scaler_config_t &config) {
  require_backoff_factor(config.backoff_factor, "");
  require_at_least_one(config.growth_interval, "", "growth_interval");
  MP_REQUIRE(config.sigma_floor >= 0.0f && std::isfinite(config.sigma_floor),
             MP_ERROR_INVALID_ARGUMENT, "sigma_floor = ", config.sigma_floor,
             " is negative or not finite");
}

}  // namespace

void check_growth(const mp_scaler_config_t &config, const char *prefix) {
  MP_REQUIRE(config.growth_factor > 1.0 && std::isfinite(config.growth_factor),
             MP_ERROR_INVALID_ARGUMENT, prefix, "growth_factor = ", config.growth_factor,
             " must be greater than 1 and finite");
  require_backoff_factor(config.backoff_factor, prefix);
  require_at_least_one(config.growth_interval, prefix, "growth_interval");
}

void check_config(const mp_scaler_config_t &config) {
  require_enum(config.policy, "policy", MP_SCALER_POLICY_STATIC, MP_SCALER_POLICY_LOGMAX);
  const bool backoff = config.policy == MP_SCALER_POLICY_BACKOFF;
  require_flags(config.flags,
                backoff ? MP_SCALER_FLAG_REFILL_EACH_STEP | MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED : 0,
                "flags");
  require_not_negative(config.max_consecutive_skips, "max_consecutive_skips");
  MP_REQUIRE(config.history >= 0 && config.history <= kMaxHistory, MP_ERROR_INVALID_ARGUMENT,
             "history = ", config.history, " is outside [0, ", kMaxHistory, "]");
  require_zero(config.reserved0, "reserved0");
  require_limit(config.min_scale, "min_scale", config);
  require_limit(config.max_scale, "max_scale", config);
  require_scale(config.init_scale, "init_scale");
  require_scale_within(config.init_scale, "init_scale", config);
  if (backoff) {
    check_growth(config, "");
    require_at_least_one(config.hysteresis, "", "hysteresis");
  }
  if (config.policy == MP_SCALER_POLICY_LOGNORMAL) check_lognormal(config);
  if (has_statistics(config.policy)) check_statistics(config);
}

// ---------------------------------------------------------------------------- state

namespace {

/// @param end_name  name of the field with the value `end`
void require_count_within(int64_t value, const char *name, int64_t end, const char *end_name) {
  MP_REQUIRE(value >= 0 && value <= end, MP_ERROR_INVALID_ARGUMENT, name, " = ", value,
             " is outside [0, ", end_name, "] = [0, ", end, "]");
}

/// Each counter counts a subset of an earlier one: overflows of skipped, skipped of steps.
void check_counts(const mp_scaler_state_t &state) {
  require_count_within(state.steps, "state->steps", kMaxSteps, "2^52");
  require_count_within(state.skipped, "state->skipped", state.steps, "steps");
  require_count_within(state.overflows, "state->overflows", state.skipped, "skipped");
  require_count_within(state.out_of_range, "state->out_of_range", state.skipped, "skipped");
  require_count_within(state.no_scale, "state->no_scale", state.skipped, "skipped");
  const int64_t skips = state.overflows + state.out_of_range + state.no_scale;
  MP_REQUIRE(skips == state.skipped, MP_ERROR_INVALID_ARGUMENT, "state->skipped = ", state.skipped,
             " must be overflows + out_of_range + no_scale = ", skips);
  require_count_within(state.skipped_nan, "state->skipped_nan", state.overflows, "overflows");
  require_count_within(state.consecutive_skips, "state->consecutive_skips", state.skipped,
                       "skipped");
}

void require_power(double power, const char *name) {
  MP_REQUIRE(power >= 0.0 && power <= 1.0, MP_ERROR_INVALID_ARGUMENT, name, " = ", power,
             " is outside [0, 1]");
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
  require_finite(state.log2_square_slow, "state->log2_square_slow");
  MP_REQUIRE(state.log2_square_slow >= 0.0f, MP_ERROR_INVALID_ARGUMENT,
             "state->log2_square_slow = ", state.log2_square_slow, " is negative");
  require_power(state.beta1_power, "state->beta1_power");
  require_power(state.beta2_power, "state->beta2_power");
  require_finite(state.headroom, "state->headroom");
  MP_REQUIRE(state.headroom >= 0.0f, MP_ERROR_INVALID_ARGUMENT,
             "state->headroom = ", state.headroom, " is negative");
  // Samples of logmax are unbounded: an overflow counts as 2^log2_max.
  if (config.policy == MP_SCALER_POLICY_LOGNORMAL) check_log2_statistics(state);
}

}  // namespace

void require_growth_tracker(int32_t tracker, const char *prefix, int32_t first, int32_t interval) {
  MP_REQUIRE(tracker >= first && tracker < interval, MP_ERROR_INVALID_ARGUMENT, prefix,
             "growth_tracker = ", tracker, " is outside [", first, ", growth_interval) = [", first,
             ", ", interval, ")");
}

// Checkpoints can be corrupt.  States that no scaler produces are rejected, because most of them
// would affect every later scale.
void check_state(const mp_scaler_state_t &state, const mp_scaler_config_t &config) {
  MP_REQUIRE(enum_value(state.policy) == enum_value(config.policy), MP_ERROR_INVALID_ARGUMENT,
             "state->policy = ", state.policy, " must equal the scaler's policy, ", config.policy);
  require_scale_within(state.scale, "state->scale", config);
  // status is derived from consecutive_skips and max_consecutive_skips; max_consecutive_skips may have changed.
  require_enum(state.status, "state->status", MP_SCALER_STATUS_OK, MP_SCALER_STATUS_DIVERGED);
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

}  // namespace mp
