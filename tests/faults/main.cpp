// Runs the fault tests: failures in the environment of the library.
//
// This process does not use the library: each test forks, and its children start without library
// state.
//
// With --calls NAME it makes calls of the catalog without injected faults, and prints the call
// that failed: for the software device, which injects faults of the CUDA runtime.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "run.h"
#include "tests/support/calls/catalog.h"
#include "tests/support/tally.h"

namespace {

using namespace mptest;
using namespace mptest::faults;

constexpr int kHasFailed = 3;

int run_alone(std::string_view name) {
  const mp_log_callback_t drop = [](mp_log_level_t, const char *, void *) {};
  mp_set_log_callback(drop, nullptr, MP_LOG_ERROR);
  std::string findings;
  try {
    const Catalog catalog = calls_named({name});
    Run run(false, findings);
    for (const Entry &calls : catalog) calls.run(run);
    run.finish();
  } catch (const Stuck &) {
  }
  std::fputs(findings.c_str(), stdout);
  return findings.empty() ? EXIT_SUCCESS : kHasFailed;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--calls") try {
      return run_alone(argv[2]);
    } catch (const std::exception &error) {
      std::fprintf(stderr, "%s\n", error.what());
      return EXIT_FAILURE;
    }
  std::printf("%s\n", mp_build_info());
  return mptest::run_tests(argc, argv);
}
