// The loss-scale policies as functions from state to state.  mpcore.h, section 7, says what each
// does and where it comes from.
//
// Pure: the same code runs on the device, on the host and in the tests.
#pragma once

#include <cmath>

#include "kernels/kernels.h"
#include "kernels/simt/target.h"

namespace mp::MP_TARGET {

MP_HD float clamped_scale(const mp_scaler_config_t &config, float scale) {
  return scale < config.min_scale   ? config.min_scale
         : scale > config.max_scale ? config.max_scale
                                    : scale;
}

/// Torch's rule, with Megatron's or Apex's hysteresis.
MP_HD void update_backoff(const mp_scaler_config_t &config, mp_scaler_state_t &state,
                          bool overflow) {
  if (overflow) {
    state.growth_tracker = 0;
    if (state.hysteresis_left > 0) state.hysteresis_left--;
    if (state.hysteresis_left == 0)
      state.scale = clamped_scale(config, state.scale * config.backoff_factor);
    return;
  }
  if (config.flags & MP_SCALER_REFILL_EACH_STEP) state.hysteresis_left = config.hysteresis;
  if (++state.growth_tracker < config.growth_interval) return;
  state.growth_tracker = 0;
  state.hysteresis_left = config.hysteresis;
  state.scale = clamped_scale(config, state.scale * config.growth_factor);
}

/// log2 of the scale that the statistics ask for: log2_max - mu - overflow_std_dev * sigma, rounded
/// down.  In whole bits here already, so that head-room does not take the fraction a second time.
MP_HD double lognormal_exponent(const mp_scaler_config_t &config, const mp_scaler_state_t &state) {
  const double fast = 1.0 - state.beta1_power, slow = 1.0 - state.beta2_power;
  const double mean = state.log2_mean / fast;
  const double slow_mean = state.log2_mean_slow / slow;
  const double variance = state.log2_square_slow / slow - slow_mean * slow_mean;
  const double sigma = variance > 0.0 ? sqrt(variance) : 0.0;
  const double floored = sigma > config.sigma_floor ? sigma : config.sigma_floor;
  return floor(config.log2_max - mean - config.overflow_std_dev * floored);
}

MP_HD void observe(const mp_scaler_config_t &config, mp_scaler_state_t &state, double log2_amax) {
  const auto mix = [](float old, float beta, double sample) {
    return static_cast<float>(beta * static_cast<double>(old) + (1.0 - beta) * sample);
  };
  state.log2_mean = mix(state.log2_mean, config.beta1, log2_amax);
  state.log2_mean_slow = mix(state.log2_mean_slow, config.beta2, log2_amax);
  state.log2_square_slow = mix(state.log2_square_slow, config.beta2, log2_amax * log2_amax);
  state.beta1_power *= config.beta1;
  state.beta2_power *= config.beta2;
}

/// @param amax  largest |gradient| as measured, still multiplied by S; finite unless `overflow`.
MP_HD void update_lognormal(const mp_scaler_config_t &config, mp_scaler_state_t &state,
                            bool overflow, float amax) {
  const bool has_statistics = state.beta1_power < 1.0;
  if (overflow) {
    state.growth_tracker = 0;
    const float backed_off = state.scale * config.backoff_factor;
    if (has_statistics) {
      // Ask for no more than the scale we back off to, until the head-room is given back.
      const double excess =
          lognormal_exponent(config, state) - log2(static_cast<double>(backed_off));
      if (excess > state.headroom) state.headroom = static_cast<float>(excess);
    }
    state.scale = clamped_scale(config, backed_off);
    return;
  }
  if (!(amax > 0.0f)) return;
  observe(config, state, log2(static_cast<double>(amax)) - log2(static_cast<double>(state.scale)));
  if (++state.growth_tracker >= config.growth_interval) {
    state.growth_tracker = 0;
    state.headroom = state.headroom > 1.0f ? state.headroom - 1.0f : 0.0f;
  }
  const double exponent = floor(lognormal_exponent(config, state) - state.headroom);
  state.scale = clamped_scale(config, static_cast<float>(exp2(exponent)));
}

/// One application of the policy.
MP_HD mp_scaler_state_t next_scaler_state(const mp_scaler_config_t &config, mp_scaler_state_t state,
                                          bool overflow, float amax) {
  if (config.policy == MP_SCALER_BACKOFF) update_backoff(config, state, overflow);
  if (config.policy == MP_SCALER_LOGNORMAL) update_lognormal(config, state, overflow, amax);
  state.steps++;
  if (overflow) state.skipped++;
  return state;
}

/// By one thread: the policy, the two floats that kernels read, and the flag.
MP_HD void update_scaler(ScalerDevice &scaler, const float *amax) {
  const float measured = amax != nullptr ? *amax : 0.0f;
  // A non-finite amax is an overflow even if nobody raised the flag: as a sample it would make the
  // running means infinite for good.
  const bool overflow = scaler.found_inf != 0.0f || !std::isfinite(measured);
  scaler.state = next_scaler_state(scaler.config, scaler.state, overflow, measured);
  scaler.scale = scaler.state.scale;
  scaler.inv_scale = static_cast<float>(1.0 / static_cast<double>(scaler.scale));
  scaler.found_inf = 0.0f;
}

}  // namespace mp::MP_TARGET
