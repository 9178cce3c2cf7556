// Simulator mode: plain or strict, and the number of OS threads.
#pragma once

#include <cstdint>

namespace mp::host::engine {

enum class CopyTiming { immediate, late, random };

struct Mode {
  bool strict = false;
  uint64_t seed = 0;
  CopyTiming copies = CopyTiming::immediate;

  static Mode plain() { return {}; }
  /// Returns a strict mode.  Seeds 0 (mod 8) make every copy late, seeds 1 (mod 8) immediate; all
  /// others choose at random for each copy.
  static Mode strict_with(uint64_t seed);
};

/// Returns the mode of the process, at first from the environment.  Set it only between launches.
Mode mode();
void set_mode(const Mode &);

/// Returns the maximum number of OS threads per launch.
int max_workers();

}  // namespace mp::host::engine
