// See tally.h.  Catch2 v2 does not know skipped test cases.
#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_CONSOLE_WIDTH 160
#include "tally.h"

#include <catch2/catch.hpp>
#include <cstdio>

namespace {

struct Tally {
  bool has_run = false, is_skipping = false;
  int passed = 0, failed = 0, skipped = 0;
};
Tally tally;

class Counter : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testRunStarting(const Catch::TestRunInfo &) override { tally.has_run = true; }
  void testCaseStarting(const Catch::TestCaseInfo &) override { tally.is_skipping = false; }
  void testCaseEnded(const Catch::TestCaseStats &stats) override {
    if (stats.totals.testCases.failed > 0)
      ++tally.failed;
    else if (tally.is_skipping)
      ++tally.skipped;
    else
      ++tally.passed;
  }
};
CATCH_REGISTER_LISTENER(Counter)

}  // namespace

void mptest::skip(const std::string &reason) {
  const std::string name = Catch::getResultCapture().getCurrentTestName();
  std::printf("skipped: %s: %s\n", name.c_str(), reason.c_str());
  tally.is_skipping = true;
}

int mptest::run_tests(int argc, char **argv) {
  const int failures = Catch::Session().run(argc, argv);
  if (!tally.has_run) return failures;
  std::printf("%d passed, %d failed", tally.passed, tally.failed);
  if (tally.skipped > 0) std::printf(", %d skipped", tally.skipped);
  std::printf("\n");
  return failures;
}
