// Checks of the parameters and saved states of a loss scaler.
#pragma once

#include <cstdint>

#include "mpcore.h"

namespace mp {

/// Fails unless `value` is a valid loss scale.
void require_scale(float value, const char *name);

/// Checks the parameters of torch's growth rule; `prefix` precedes their names in messages.
void check_growth(const mp_scaler_config_t &config, const char *prefix);
/// Fails unless `tracker` is in [first, interval): after `interval` clean steps the scale grows and
/// the count restarts at 0.
/// @param first  0, or -1 with MP_SCALER_FLAG_FIRST_STEP_UNCOUNTED
void require_growth_tracker(int32_t tracker, const char *prefix, int32_t first, int32_t interval);

void check_config(const mp_scaler_config_t &config);
/// Fails unless a scaler with this config can be in `state`.
void check_state(const mp_scaler_state_t &state, const mp_scaler_config_t &config);

}  // namespace mp
