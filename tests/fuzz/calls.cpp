// Random calls of all public functions in any order, generated from the headers by
// tests/fuzz/generate_calls.
//
// No call may crash, read outside of its arguments, leak, or return MP_ERROR_INTERNAL.  A call that
// fails must set a message that begins with its name, and must not write its outputs
// (World::end_call).
#define MP_ENABLE_EXPERIMENTAL
#include "tests/fuzz/usual_objects.h"

namespace fuzz {
namespace {

struct Block;  // memory of mp_malloc

void ignore_log(mp_log_level_t, const char *message, void *) {
  if (message == nullptr || std::strchr(message, '\n') != nullptr) found("log", "not one line");
}

#include "tests/fuzz/calls.inc"

}  // namespace
}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  mp_set_log_callback(fuzz::ignore_log, nullptr, MP_LOG_DEBUG);
  fuzz::World world(bytes, size);
  fuzz::make_usual_objects(world);
  while (world.has_bytes()) {
    world.begin_call();
    fuzz::kCalls[world.index_below(std::size(fuzz::kCalls))](world);
  }
  return 0;
}
