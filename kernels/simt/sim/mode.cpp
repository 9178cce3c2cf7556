// What the environment says of the machine: the mood and the number of OS threads.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/simt/sim/engine.h"

namespace mp::host::engine {

namespace {

int64_t environment_integer(const char *name, int64_t otherwise) {
  const char *const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoll(text, nullptr, 10) : otherwise;
}

Mood mood_from_environment() {
  const char *const text = std::getenv("MP_HOST_MOOD");
  if (text == nullptr || std::strcmp(text, "strict") != 0) return Mood::plain();
  return Mood::strict_with(static_cast<uint64_t>(environment_integer("MP_HOST_SEED", 1)));
}

Mood &process_mood() {
  static Mood mood = mood_from_environment();
  return mood;
}

}  // namespace

Mood Mood::strict_with(uint64_t seed) {
  const CopyTiming copies = seed % 8 == 0   ? CopyTiming::late
                            : seed % 8 == 1 ? CopyTiming::immediate
                                            : CopyTiming::random;
  return {true, seed, copies};
}
Mood mood() {
  return process_mood();
}
void set_mood(const Mood &mood) {
  process_mood() = mood;
}

int max_workers() {
  static const int count = static_cast<int>(std::clamp<int64_t>(
      environment_integer("MP_HOST_THREADS", std::thread::hardware_concurrency()), 1, 256));
  return count;
}

}  // namespace mp::host::engine
