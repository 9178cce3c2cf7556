// MP_HOST_MODE, and MP_HOST_MOOD as it was called before.  The environment is read once per process,
// so each case is a process of its own: this program again, with a hidden test that prints the mode.
#include <cstdio>

#include "testing.h"
#include "tests/support/run_again.h"

using namespace mptest;

namespace {

constexpr char kWarning[] = "mpcore: warn: MP_HOST_MOOD is deprecated, its name is MP_HOST_MODE\n";

void check_mode(const std::string &variables, const std::string &expected, size_t num_warnings) {
  const std::string output = output_of_test(
      "the mode of this process", "-u MP_HOST_MODE -u MP_HOST_MOOD -u MP_HOST_SEED " + variables);
  CAPTURE(variables, output);
  CHECK(times(output, "mode: " + expected + "\n") == 1);
  CHECK(times(output, "again: " + expected + "\n") == 1);
  CHECK(times(output, kWarning) == num_warnings);
}

}  // namespace

TEST_CASE("the mode of this process", "[.]") {
  for (const char *const title : {"mode", "again"})
    std::printf("%s: %s, seed %d\n", title, engine::mode().strict ? "strict" : "plain",
                static_cast<int>(engine::mode().seed));
}

TEST_CASE("simulator: the environment names the mode") {
  check_mode("", "plain, seed 0", 0);
  check_mode("MP_HOST_MODE=plain", "plain, seed 0", 0);
  check_mode("MP_HOST_MODE=strict", "strict, seed 1", 0);
  check_mode("MP_HOST_MODE=strict MP_HOST_SEED=7", "strict, seed 7", 0);
}

TEST_CASE("simulator: the old name of MP_HOST_MODE works, with one warning") {
  check_mode("MP_HOST_MOOD=strict MP_HOST_SEED=7", "strict, seed 7", 1);
  check_mode("MP_HOST_MOOD=plain", "plain, seed 0", 1);
  check_mode("MP_HOST_MODE=plain MP_HOST_MOOD=strict", "plain, seed 0", 0);
}
