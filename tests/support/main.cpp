// Runs the tests of the library.
//
// The first line shows the device.  On the host target the library reads MP_HOST_MODE (strict or
// plain) and MP_HOST_SEED; they are printed because the same seed reproduces a failure in strict
// mode.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tally.h"
#include "testing.h"

namespace {

const char *setting(const char *variable) {
  const char *const value = std::getenv(variable);
  return value == nullptr ? "default" : value;
}

void print_device() {
  const mp_device_info_t info = mptest::device_info();
  std::printf("device: %s (%s, arch %d)", info.name,
              info.target == MP_TARGET_HOST ? "host target" : "CUDA target", info.arch);
  if (info.target == MP_TARGET_HOST)
    std::printf(", mode %s, seed %s", setting("MP_HOST_MODE"), setting("MP_HOST_SEED"));
  std::printf("\n%s\n", mp_build_info());
}

}  // namespace

int main(int argc, char **argv) {
  mptest::quiet_log();
  try {
    print_device();
  } catch (const std::exception &error) {
    std::printf("no device: %s\n0 passed, 1 failed\n", error.what());
    return EXIT_FAILURE;
  }
  std::fflush(stdout);
  const int failures = mptest::run_tests(argc, argv);
  mptest::destroy_context();
  return failures;
}
