// Two training runs: one without interruption, and one that is repeatedly saved, destroyed and
// recreated.  They must be bit-identical, and steps must be skipped as predicted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/soak/programs.h"

namespace mptest {

/// An injected error, which must be found.
enum class Sabotage {
  none,
  tracker,  ///< the scaler resumes with one clean step fewer
  counter,  ///< the optimizer resumes with t - 1
  weight,   ///< one bit of a master weight
  moment,   ///< one bit of a moment
  copy,     ///< one bit of a 16-bit copy, if it is part of a checkpoint
  skip,     ///< one overflow is not predicted
  leak      ///< a block is lost at each resume
};

struct SoakPlan {
  int64_t steps;
  int64_t resume_every;
  uint64_t seed;
  Sabotage sabotage = Sabotage::none;
};

struct SoakResult {
  int64_t steps = 0;
  int64_t skipped = 0, skipped_nan = 0;
  int64_t injected_infinities = 0, injected_nans = 0, hot_overflows = 0;
  int64_t applied = 0;  ///< t of the optimizer, from predicted skips
  int64_t resumes = 0;
  float lowest_scale = 0, highest_scale = 0, scale = 0;
  /// Growth of memory from an early resume to the last one.
  int64_t more_blocks = 0, more_device_bytes = 0;
  uint64_t hash = 0;    ///< FNV-1a of the last checkpoint
  std::string failure;  ///< empty = none
};

/// @param progress  called periodically with the number of completed steps
SoakResult soak(const SoakProgram &soak, const SoakPlan &plan,
                const std::function<void(int64_t)> &progress);

}  // namespace mptest
