// Telling the host what became of a step (mp_step_query), without its having to wait.
#pragma once

#include "kernels/simt/simt.h"
#include "kernels/step/args.h"

namespace mp::MP_TARGET {

/// By one thread, before the update that counts the step.  The verdict comes last: who reads it in
/// acquire order sees the rest.
/// @param next_scale  S after the step; NULL where only the update will know
MP_DEVICE void publish_outcome(const ScalerDevice &scaler, bool skipped,
                               const float *next_scale = nullptr) {
  const uint64_t step = static_cast<uint64_t>(scaler.state.steps) + 1;
  StepOutcome &outcome = scaler.outcomes[step % kOutcomes];
  const auto publish = [&](uint64_t &word, float scale) {
    store_release_system(&word, step << 32 | bits_of(scale));
  };
  if (skipped) publish(outcome.scale, scaler.scale);
  if (skipped && next_scale != nullptr) publish(outcome.next_scale, *next_scale);
  store_release_system(&outcome.verdict, step << 1 | uint64_t{skipped});
}

}  // namespace mp::MP_TARGET
