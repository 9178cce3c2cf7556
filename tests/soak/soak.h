// Two trainings side by side: one that is never interrupted, and one that is saved, destroyed and made
// anew again and again.  They must not differ in a bit, and the skips must be those that were foretold.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/soak/programs.h"

namespace mptest {

/// A mistake made on purpose, which has to be noticed.
enum class Sabotage {
  none,
  tracker,  ///< the scaler goes on with one clean step less
  counter,  ///< the optimizer's t is one less
  weight,   ///< one bit of a master weight
  moment,   ///< one bit of a moment
  copy,     ///< one bit of a 16-bit copy, where that is part of a checkpoint
  skip,     ///< one overflow is not foretold
  leak      ///< a block is lost with each resume
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
  int64_t applied = 0;  ///< t of the optimizer, from skips that were foretold
  int64_t resumes = 0, compared_bytes = 0;
  float lowest_scale = 0, highest_scale = 0, scale = 0;
  /// Behind the last resume, more than behind one near the beginning.
  int64_t more_blocks = 0, more_device_bytes = 0;
  uint64_t hash = 0;    ///< FNV-1a of the last checkpoint
  std::string failure;  ///< empty: all is well
};

/// @param progress  called now and then with the steps done
SoakResult soak(const SoakProgram &soak, const SoakPlan &plan,
                const std::function<void(int64_t)> &progress);

}  // namespace mptest
