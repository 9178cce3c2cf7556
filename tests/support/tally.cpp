// Not all versions of Catch2 have skipped test cases, and their exit codes differ.
#include "catch_session.h"
// Must follow it, since it compiles the main part of Catch2.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tally.h"

namespace {

struct Tally {
  bool has_run = false, is_skipping = false;
  int passed = 0, failed = 0, skipped = 0;
  std::string running;
};
Tally tally;

class Counter : public Catch::EventListenerBase {
 public:
  using Catch::EventListenerBase::EventListenerBase;

  void testRunStarting(const Catch::TestRunInfo &) override { tally.has_run = true; }
  void testCaseStarting(const Catch::TestCaseInfo &test) override {
    tally.is_skipping = false;
    tally.running = test.name;
  }
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

/// Version 3 renamed the option that lists names, which scripts use; both names are accepted here.
std::vector<const char *> arguments_of(int argc, char **argv) {
  std::vector<const char *> arguments;
  for (int i = 0; i < argc; ++i) {
    if (CATCH_VERSION_MAJOR >= 3 && std::strcmp(argv[i], "--list-test-names-only") == 0)
      arguments.insert(arguments.end(), {"--list-tests", "--verbosity", "quiet"});
    else
      arguments.push_back(argv[i]);
  }
  return arguments;
}

}  // namespace

void mptest::skip(const std::string &reason) {
  if (!tally.is_skipping) std::printf("skipped: %s: %s\n", tally.running.c_str(), reason.c_str());
  tally.is_skipping = true;
}

int mptest::run_tests(int argc, char **argv) {
  const std::vector<const char *> arguments = arguments_of(argc, argv);
  const int code = Catch::Session().run(static_cast<int>(arguments.size()), arguments.data());
  if (!tally.has_run) return code;
  std::printf("%d passed, %d failed", tally.passed, tally.failed);
  if (tally.skipped > 0) std::printf(", %d skipped", tally.skipped);
  std::printf("\n");
  return tally.failed > 0 ? EXIT_FAILURE : code;
}
