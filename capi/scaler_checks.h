// What the parameters and the saved states of a loss scaler may be.
#pragma once

#include <cstdint>

#include "mpcore.h"

namespace mp {

/// A scale to begin with.
void require_scale(float value, const char *name);

/// The fields of torch's rule; `prefix` is what the caller writes before their names.
void check_growth(const mp_scaler_config_t &config, const char *prefix);
/// Of that rule.  With as many clean steps as the interval the scale has grown, and they count from 0.
/// @param first  0, or -1 with MP_SCALER_FIRST_STEP_UNCOUNTED
void require_growth_tracker(int32_t tracker, const char *prefix, int32_t first, int32_t interval);

void check_config(const mp_scaler_config_t &config);
/// A state that a scaler of this config can be in.
void check_state(const mp_scaler_state_t &state, const mp_scaler_config_t &config);

}  // namespace mp
