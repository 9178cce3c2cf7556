// Outcome of a step as recorded by the scaler, and its publication to the host (mp_scaler_query_step),
// which does not wait for it.
#pragma once

#include <cmath>

#include "kernels/simt/simt.h"
#include "kernels/step/step_args.h"

namespace mp::MP_TARGET {

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

}  // namespace mp::MP_TARGET
