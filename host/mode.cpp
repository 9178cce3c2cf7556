// Simulator settings from the environment: mode, seed and number of OS threads.
#include "host/engine.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "base/environment.h"
#include "base/lifetime.h"

namespace mp::host::engine {

namespace {

constexpr const char *kModeRule = "must be plain or strict";
constinit EnvironmentVariable mode_variable("MP_HOST_MODE", kModeRule);
constinit EnvironmentVariable seed_variable("MP_HOST_SEED", "must be a 64-bit integer");
constinit EnvironmentVariable threads_variable("MP_HOST_THREADS",
                                               "must be an integer from 1 to 256");

bool is_strict() {
  return mode_variable.word({"plain", "strict"}) == 1;
}

Mode mode_from_environment() {
  if (!is_strict()) return Mode::plain();
  using Limits = std::numeric_limits<int64_t>;
  return Mode::strict_with(
      static_cast<uint64_t>(seed_variable.integer(Limits::min(), Limits::max()).value_or(1)));
}

Mode &process_mode() {
  return lazy_init([] { return mode_from_environment(); });
}

}  // namespace

Mode Mode::strict_with(uint64_t seed) {
  const CopyTiming copies = seed % 8 == 0   ? CopyTiming::late
                            : seed % 8 == 1 ? CopyTiming::immediate
                                            : CopyTiming::random;
  return {true, seed, copies};
}
Mode mode() {
  return process_mode();
}
void set_mode(const Mode &mode) {
  process_mode() = mode;
}

int max_workers() {
  return lazy_init([] {
    constexpr int64_t kMax = 256;
    const int64_t processors = std::thread::hardware_concurrency();
    return static_cast<int>(
        threads_variable.integer(1, kMax).value_or(std::clamp<int64_t>(processors, 1, kMax)));
  });
}

}  // namespace mp::host::engine
