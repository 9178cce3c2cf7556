// How strictly the simulator runs kernels, and on how many OS threads.
#pragma once

#include <cstdint>

namespace mp::host::engine {

enum class CopyTiming { immediate, late, random };

struct Mode {
  bool strict = false;
  uint64_t seed = 0;
  CopyTiming copies = CopyTiming::immediate;

  static Mode plain() { return {}; }
  /// Seeds 0 and 1 (mod 8) make every copy late or immediate; the others toss a coin for each.
  static Mode strict_with(uint64_t seed);
};

/// The mode of the process; starts from the environment.  Change it only between launches.
Mode mode();
void set_mode(const Mode &);

/// OS threads that launches may use.
int max_workers();

}  // namespace mp::host::engine
