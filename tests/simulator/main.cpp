// Runs the tests of the simulator and ends with one line: "N passed, N failed[, N skipped]".
#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_CONSOLE_WIDTH 160
#include <cstdio>

#include "testing.h"

namespace {

struct Tally {
  bool ran = false, skipping = false;
  int passed = 0, failed = 0, skipped = 0;
};
Tally tally;

class Counter : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo &) override {
    tally.ran = true;
    tally.skipping = false;
  }
  void testCaseEnded(const Catch::TestCaseStats &stats) override {
    if (stats.totals.testCases.failed > 0)
      ++tally.failed;
    else if (tally.skipping)
      ++tally.skipped;
    else
      ++tally.passed;
  }
};
CATCH_REGISTER_LISTENER(Counter)

}  // namespace

void mptest::skip(const std::string &reason) {
  tally.skipping = true;
  std::printf("skipped: %s: %s\n", Catch::getResultCapture().getCurrentTestName().c_str(),
              reason.c_str());
}

int main(int argc, char **argv) {
  const int failures = Catch::Session().run(argc, argv);
  if (!tally.ran) return failures;
  std::printf("%d passed, %d failed", tally.passed, tally.failed);
  if (tally.skipped > 0) std::printf(", %d skipped", tally.skipped);
  std::printf("\n");
  return failures;
}
