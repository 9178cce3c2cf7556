// Telling the host whether a step was taken (mp_step_query), without its having to wait.
#pragma once

#include "kernels/simt/simt.h"

namespace mp::MP_TARGET {

/// By one thread, before the update that counts the step.
MP_DEVICE void publish_outcome(const ScalerDevice &scaler, bool skipped) {
  const uint64_t step = static_cast<uint64_t>(scaler.state.steps) + 1;
  store_release_system(&scaler.outcomes[step % kOutcomes], step << 1 | uint64_t{skipped});
}

}  // namespace mp::MP_TARGET
