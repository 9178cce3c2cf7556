// Runs the tests of the library.  The first lines show the device and the build.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tally.h"
#include "testing.h"

namespace {

void print_device() {
  const mp_device_info_t info = mptest::device_info();
  std::printf("device: %s (%s, arch %d)\n%s\n", info.name,
              info.target == MP_TARGET_HOST ? "host target" : "CUDA target", info.arch,
              mp_build_info());
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
