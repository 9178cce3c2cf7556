// Loss-scale policies as functions from state to state, documented with sources in mpcore/scaler.h,
// and the outcome of a step, which is published to the host (mp_scaler_query_step) without a wait.
//
// Policies are pure: the same code runs on the device, on the host and in the tests, with the same
// bits (reproducible_math.h).
#pragma once

#include <cmath>

#include "kernels/simt/reproducible_math.h"
#include "kernels/simt/simt.h"
#include "kernels/step/step_args.h"

namespace mp::MP_TARGET {

// ---------------------------------------------------------------------------- outcome of a step

/// False if gradients cannot be unscaled: S is 0, or 1/S is not a finite number.
MP_DEVICE bool has_scale(const ScalerDevice &scaler) {
  return std::isfinite(scaler.inv_scale);
}

/// Returns the outcome of everything recorded since the last update.  A non-finite amax is an
/// overflow even if the flag is not set: as a sample it would make the running means infinite.
MP_DEVICE mp_step_outcome_t noted_outcome(const ScalerDevice &scaler) {
  if (scaler.found_inf != 0.0f || !std::isfinite(scaler.amax)) return MP_STEP_OUTCOME_OVERFLOW;
  if (!has_scale(scaler)) return MP_STEP_OUTCOME_NO_SCALE;
  return scaler.out_of_range != 0 ? MP_STEP_OUTCOME_OUT_OF_RANGE : MP_STEP_OUTCOME_TAKEN;
}

/// Publishes the outcome of a step.  Called by one thread, before the update that counts the step.
/// The verdict is stored last: a host thread that reads it with acquire order sees the other words.
/// @param next_scale  S after the step; NULL if only the update computes it
MP_DEVICE void publish_outcome(const ScalerDevice &scaler, mp_step_outcome_t outcome,
                               const float *next_scale = nullptr) {
  const bool skipped = outcome != MP_STEP_OUTCOME_TAKEN;
  const uint64_t step = static_cast<uint64_t>(scaler.state.steps) + 1;
  StepOutcome &slot = scaler.outcomes[step % kOutcomes];
  const auto publish = [&](uint64_t &word, float scale) {
    store_release_system(&word, step << 32 | bits_of(scale));
  };
  if (skipped) publish(slot.scale, scaler.scale);
  if (skipped && next_scale != nullptr) publish(slot.next_scale, *next_scale);
  store_release_system(&slot.verdict, step << 3 | static_cast<uint64_t>(outcome));
}

// ---------------------------------------------------------------------------- policies

/// Clamps to the limits.  A limit of 0 means none; NaN stays NaN.
MP_DEVICE float clamped_scale(const mp_scaler_config_t &config, float scale) {
  const bool has_max = config.max_scale > 0.0f;
  return scale < config.min_scale              ? config.min_scale
         : has_max && scale > config.max_scale ? config.max_scale
                                               : scale;
}

/// PyTorch's rule, with the hysteresis of Megatron or Apex.
MP_DEVICE void update_backoff(const mp_scaler_config_t &config, mp_scaler_state_t &state,
                              bool overflow) {
  if (overflow) {
    state.growth_tracker = config.flags & MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED ? -1 : 0;
    if (state.hysteresis_left > 0) state.hysteresis_left--;
    if (state.hysteresis_left == 0)
      state.scale = clamped_scale(config, static_cast<float>(state.scale * config.backoff_factor));
    return;
  }
  if (config.flags & MP_SCALER_FLAG_REFILL_EACH_STEP) state.hysteresis_left = config.hysteresis;
  if (++state.growth_tracker < config.growth_interval) return;
  state.growth_tracker = 0;
  state.hysteresis_left = config.hysteresis;
  const float grown = clamped_scale(config, static_cast<float>(state.scale * config.growth_factor));
  if (std::isfinite(grown)) state.scale = grown;
}

/// Returns log2 of the scale derived from the statistics: log2_max - mu - overflow_std_dev * sigma,
/// rounded down.  Rounded before the headroom is computed and subtracted, so that the fraction is
/// not removed twice.
MP_DEVICE double lognormal_exponent(const mp_scaler_config_t &config,
                                    const mp_scaler_state_t &state) {
  const double fast = 1.0 - state.beta1_power, slow = 1.0 - state.beta2_power;
  const double mean = state.log2_mean / fast;
  const double slow_mean = state.log2_mean_slow / slow;
  const double variance =
      state.log2_square_slow / slow - reproducible::product(slow_mean, slow_mean);
  const double sigma = variance > 0.0 ? sqrt(variance) : 0.0;
  const double floored = sigma > config.sigma_floor ? sigma : config.sigma_floor;
  const double deviations = reproducible::product(double{config.overflow_std_dev}, floored);
  return floor(config.log2_max - mean - deviations);
}

MP_DEVICE void observe(const mp_scaler_config_t &config, mp_scaler_state_t &state,
                       double log2_amax) {
  using reproducible::product;
  const auto mix = [](float old, double beta, double sample) {
    return static_cast<float>(product(beta, double{old}) + product(1.0 - beta, sample));
  };
  state.log2_mean = mix(state.log2_mean, config.beta1, log2_amax);
  state.log2_mean_slow = mix(state.log2_mean_slow, config.beta2, log2_amax);
  state.log2_square_slow = mix(state.log2_square_slow, config.beta2, product(log2_amax, log2_amax));
  state.beta1_power = product(state.beta1_power, config.beta1);
  state.beta2_power = product(state.beta2_power, config.beta2);
}

/// Raises the headroom so that the statistics give at most `scale` until the headroom shrinks.
MP_DEVICE void limit_to(const mp_scaler_config_t &config, mp_scaler_state_t &state, float scale) {
  const double excess = lognormal_exponent(config, state) - reproducible::log2(double{scale});
  constexpr float kLargest = 3.40282347e38f;  // overflow_std_dev may be any finite number
  if (excess > state.headroom)
    state.headroom = excess < kLargest ? static_cast<float>(excess) : kLargest;
}

/// Lognormal policy.
/// @param amax  largest |gradient| as measured, still multiplied by S; finite unless `overflow`
MP_DEVICE void update_lognormal(const mp_scaler_config_t &config, mp_scaler_state_t &state,
                                bool overflow, float amax) {
  const bool has_statistics = state.beta1_power < 1.0;
  if (overflow) {
    state.growth_tracker = 0;
    const float backed_off = static_cast<float>(state.scale * config.backoff_factor);
    // Not 0: no finite headroom would suffice.
    constexpr float kSmallest = 1.40129846e-45f;
    if (has_statistics) limit_to(config, state, backed_off > 0.0f ? backed_off : kSmallest);
    state.scale = clamped_scale(config, backed_off);
    return;
  }
  if (!(amax > 0.0f)) return;
  observe(config, state,
          reproducible::log2(double{amax}) - reproducible::log2(double{state.scale}));
  // The first statistics do not include earlier overflows; without a limit, the scale would have to
  // back off again.
  if (!has_statistics && state.skipped > 0) limit_to(config, state, state.scale);
  if (++state.growth_tracker >= config.growth_interval) {
    state.growth_tracker = 0;
    state.headroom = state.headroom > 1.0f ? state.headroom - 1.0f : 0.0f;
  }
  const double exponent = floor(lognormal_exponent(config, state) - state.headroom);
  state.scale = clamped_scale(config, static_cast<float>(reproducible::exp2(exponent)));
}

/// Adds a sample to LogMaxScaler's statistics, rounding every operation to fp32 like TensorFlow.
MP_DEVICE float logmax_mix(float old, double beta, float sample) {
  using reproducible::product;
  return product(static_cast<float>(beta), old) + product(static_cast<float>(1.0 - beta), sample);
}

/// LogMaxScaler.update_op, including its defects.
/// @param amax  see update_lognormal
MP_DEVICE void update_logmax(const mp_scaler_config_t &config, mp_scaler_state_t &state,
                             bool overflow, float amax) {
  using reproducible::product;
  const float unscaled = amax * static_cast<float>(1.0 / double{state.scale});
  constexpr float kLn2 = 0.693147181f;
  const float ln_amax = static_cast<float>(reproducible::log(double{unscaled}));
  const float x =
      overflow ? static_cast<float>(reproducible::exp2(double{config.log2_max})) : ln_amax / kLn2;
  state.log2_mean = logmax_mix(state.log2_mean, config.beta1, x);
  state.log2_mean_slow = logmax_mix(state.log2_mean_slow, config.beta2, x);
  state.log2_square_slow = logmax_mix(state.log2_square_slow, config.beta2, product(x, x));
  // Computed in fp32: GCC 12 drops the rounding from fp64 to fp32 when it vectorizes the two.
  const float beta1_power = static_cast<float>(state.beta1_power);
  const float beta2_power = static_cast<float>(state.beta2_power);
  state.beta1_power = product(beta1_power, static_cast<float>(config.beta1));
  state.beta2_power = product(beta2_power, static_cast<float>(config.beta2));

  const float fast = 1.0f - static_cast<float>(state.beta1_power);
  const float slow = 1.0f - static_cast<float>(state.beta2_power);
  const float slow_mean = state.log2_mean_slow / slow;
  const float variance = state.log2_square_slow / slow - product(slow_mean, slow_mean);
  const float sigma = sqrtf(variance < 0.0f ? 0.0f : variance);
  const float cutoff = product(sigma, config.overflow_std_dev) + state.log2_mean / fast;
  const float exponent = 16.0f - cutoff;  // 16, regardless of log2_max
  state.scale = clamped_scale(config, static_cast<float>(reproducible::exp2(double{exponent})));
}

MP_DEVICE float inverse(float scale) {
  return static_cast<float>(1.0 / static_cast<double>(scale));
}

/// True if more consecutive steps have been skipped than a wrong scale explains.
MP_DEVICE bool has_diverged(const mp_scaler_config_t &config, const mp_scaler_state_t &state) {
  return config.max_consecutive_skips > 0 &&
         state.consecutive_skips >= config.max_consecutive_skips;
}

MP_DEVICE void count_step(const mp_scaler_config_t &config, mp_scaler_state_t &state,
                          mp_step_outcome_t outcome, float amax) {
  const bool overflow = outcome == MP_STEP_OUTCOME_OVERFLOW,
             skipped = outcome != MP_STEP_OUTCOME_TAKEN;
  state.steps++;
  state.skipped += skipped;
  state.overflows += overflow;
  state.out_of_range += outcome == MP_STEP_OUTCOME_OUT_OF_RANGE;
  state.no_scale += outcome == MP_STEP_OUTCOME_NO_SCALE;
  state.skipped_nan += overflow && std::isnan(amax);
  state.consecutive_skips = skipped ? state.consecutive_skips + 1 : 0;
  const bool has_scale = std::isfinite(inverse(state.scale)) && outcome != MP_STEP_OUTCOME_NO_SCALE;
  state.status =
      !has_scale || has_diverged(config, state) ? MP_SCALER_STATUS_DIVERGED : MP_SCALER_STATUS_OK;
}

/// Returns the state after one step.  The policy applies to steps that were taken and, until the
/// scaler has diverged, to overflows.
MP_DEVICE mp_scaler_state_t next_scaler_state(const mp_scaler_config_t &config,
                                              mp_scaler_state_t state, mp_step_outcome_t outcome,
                                              float amax) {
  const bool overflow = outcome == MP_STEP_OUTCOME_OVERFLOW;
  if (outcome == MP_STEP_OUTCOME_TAKEN || (overflow && !has_diverged(config, state))) {
    if (config.policy == MP_SCALER_POLICY_BACKOFF) update_backoff(config, state, overflow);
    if (config.policy == MP_SCALER_POLICY_LOGNORMAL)
      update_lognormal(config, state, overflow, amax);
    if (config.policy == MP_SCALER_POLICY_LOGMAX) update_logmax(config, state, overflow, amax);
  }
  count_step(config, state, outcome, amax);
  return state;
}

/// Records the amax of a step for the next update.  Called by one thread.
/// @param amax  NULL: no effect
MP_DEVICE void note_amax(ScalerDevice &scaler, const float *amax) {
  if (amax == nullptr || std::isnan(scaler.amax)) return;
  if (!(*amax <= scaler.amax)) scaler.amax = *amax;  // also if it is NaN
}

MP_DEVICE void record(ScalerDevice &scaler, mp_step_outcome_t outcome) {
  if (scaler.history == nullptr) return;
  const int32_t skipped = outcome == MP_STEP_OUTCOME_TAKEN      ? 0
                          : outcome == MP_STEP_OUTCOME_OVERFLOW ? 1 + std::isnan(scaler.amax)
                                                                : static_cast<int32_t>(outcome);
  in_gmem(scaler.history)[scaler.num_recorded % scaler.config.history_length] = {scaler.scale,
                                                                                 skipped};
  scaler.num_recorded++;
}

/// Records and publishes the outcome of a step, applies the policy, and updates scale and flag.
/// Called by one thread.
MP_DEVICE void update_scaler(ScalerDevice &scaler, mp_step_outcome_t outcome) {
  record(scaler, outcome);
  const mp_scaler_state_t next =
      next_scaler_state(scaler.config, scaler.state, outcome, scaler.amax);
  publish_outcome(scaler, outcome, &next.scale);
  scaler.state = next;
  scaler.scale = scaler.state.scale;
  scaler.inv_scale = inverse(scaler.scale);
  scaler.found_inf = 0.0f;
  scaler.amax = 0.0f;
  scaler.out_of_range = 0;
}

}  // namespace mp::MP_TARGET
