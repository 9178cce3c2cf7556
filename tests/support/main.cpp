// Runs the Catch2 tests and ends with one line: "N passed, N failed[, N skipped]", test cases.
//
// Which device is meant is in the first line.  On the host target the library itself reads
// MP_HOST_MODE (strict or plain) and MP_HOST_SEED; they are printed because a failure in the
// strict mode is reproduced by the same seed.
#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_CONSOLE_WIDTH 160
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "testing.h"

namespace {

struct Tally {
  bool ran = false;
  int passed = 0;
  int failed = 0;
  int skipped = 0;
};
Tally tally;

/// Counts what Catch2 v2 does not know: skipped test cases.
class Counter : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testRunStarting(const Catch::TestRunInfo &) override { tally.ran = true; }

  void testCaseEnded(const Catch::TestCaseStats &stats) override {
    const auto &skipped = mptest::skipped_tests();
    const bool was_skipped =
        std::find(skipped.begin(), skipped.end(), stats.testInfo.name) != skipped.end();
    if (stats.totals.testCases.failed > 0) {
      ++tally.failed;
    } else if (was_skipped) {
      ++tally.skipped;
    } else {
      ++tally.passed;
    }
  }
};
CATCH_REGISTER_LISTENER(Counter)

const char *setting(const char *variable, const char *otherwise) {
  const char *const value = std::getenv(variable);
  return value == nullptr ? otherwise : value;
}

void print_device() {
  const mp_device_info_t info = mptest::device_info();
  std::printf("device: %s (%s, arch %d)", info.name,
              info.target == MP_TARGET_HOST ? "host target" : "CUDA target", info.arch);
  if (info.target == MP_TARGET_HOST) {
    std::printf(", mode %s, seed %s", setting("MP_HOST_MODE", "default"),
                setting("MP_HOST_SEED", "default"));
  }
  std::printf("\n%s\n", mp_build_info());
}

void print_tally() {
  std::printf("%d passed, %d failed", tally.passed, tally.failed);
  if (tally.skipped > 0) std::printf(", %d skipped", tally.skipped);
  std::printf("\n");
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
  const int failures = Catch::Session().run(argc, argv);
  mptest::destroy_context();
  if (tally.ran) print_tally();
  return failures;
}
