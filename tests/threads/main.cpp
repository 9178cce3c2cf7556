// Tests of threads, run without and with ThreadSanitizer.  See gang.h.
#include <string_view>

#include "gang.h"
#include "tests/support/tally.h"
#include "tests/support/testing.h"

int main(int argc, char **argv) {
  const bool is_child = argc == 2 && std::string_view(argv[1]).starts_with(mptest::kChild);
  if (!is_child) mptest::quiet_log();
  const int failures = mptest::run_tests(argc, argv);
  if (!is_child) mptest::destroy_context();
  return failures;
}
