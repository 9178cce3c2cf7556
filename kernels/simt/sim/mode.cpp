// What the environment says of the simulator: its mode and how many OS threads it may use.
#include "kernels/simt/sim/mode.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/made_once.h"

namespace mp::host::engine {

namespace {

int64_t environment_integer(const char *name, int64_t otherwise) {
  const char *const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoll(text, nullptr, 10) : otherwise;
}

/// NULL if the environment names no mode.  MP_HOST_MOOD is an earlier name of the variable.
const char *mode_name() {
  if (const char *const name = std::getenv("MP_HOST_MODE")) return name;
  const char *const name = std::getenv("MP_HOST_MOOD");
  static std::atomic_flag is_told;  // by one of the threads that have come at the same time
  if (name != nullptr && !is_told.test_and_set())
    std::fputs("mpcore: warn: MP_HOST_MOOD is deprecated, its name is MP_HOST_MODE\n", stderr);
  return name;
}

Mode mode_from_environment() {
  const char *const text = mode_name();
  if (text == nullptr || std::strcmp(text, "strict") != 0) return Mode::plain();
  return Mode::strict_with(static_cast<uint64_t>(environment_integer("MP_HOST_SEED", 1)));
}

Mode &process_mode() {
  return made_once([] { return mode_from_environment(); });
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
  return made_once([] {
    return static_cast<int>(std::clamp<int64_t>(
        environment_integer("MP_HOST_THREADS", std::thread::hardware_concurrency()), 1, 256));
  });
}

}  // namespace mp::host::engine
