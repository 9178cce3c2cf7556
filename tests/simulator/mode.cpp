// Environment variables of the simulator.  They are read once per process, so each case runs this
// program again with a hidden test that prints the mode.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "testing.h"
#include "tests/support/run_again.h"

using namespace mptest;

namespace {

void check_mode(const std::string &variables, const std::string &expected) {
  const std::string output =
      output_of_test("the mode of this process", "-u MP_HOST_MODE -u MP_HOST_SEED " + variables);
  CAPTURE(variables, output);
  CHECK(times(output, "mode: " + expected + "\n") == 1);
  CHECK(times(output, "again: " + expected + "\n") == 1);
}

}  // namespace

TEST_CASE("the mode of this process", "[.]") {
  for (const char *const title : {"mode", "again"})
    std::printf("%s: %s, seed %d\n", title, engine::mode().strict ? "strict" : "plain",
                static_cast<int>(engine::mode().seed));
  std::printf("workers: %d\n", engine::max_workers());
}

TEST_CASE("simulator: the environment names the mode") {
  check_mode("", "plain, seed 0");
  check_mode("MP_HOST_MODE=plain", "plain, seed 0");
  check_mode("MP_HOST_MODE=strict", "strict, seed 1");
  check_mode("MP_HOST_MODE=strict MP_HOST_SEED=7", "strict, seed 7");
}

TEST_CASE(
    "simulator: a value that cannot be used is as if it were not set, with one warning each") {
  const std::string mode = "must be plain or strict", seed = "must be a 64-bit integer",
                    threads = "must be an integer from 1 to 256";
  const int processors = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 256);
  for (const auto &[name, value, rule] :
       std::vector<std::array<std::string, 3>>{{"MP_HOST_MODE", "strickt", mode},
                                               {"MP_HOST_SEED", "7x", seed},
                                               {"MP_HOST_SEED", "1e3", seed},
                                               {"MP_HOST_SEED", "9223372036854775808", seed},
                                               {"MP_HOST_THREADS", "abc", threads},
                                               {"MP_HOST_THREADS", "0", threads},
                                               {"MP_HOST_THREADS", "257", threads},
                                               {"MP_HOST_THREADS", "2 ", threads}}) {
    const bool is_strict = name == "MP_HOST_SEED";
    const std::string output = output_of_test(
        "the mode of this process", "-u MP_HOST_MODE -u MP_HOST_SEED -u MP_HOST_THREADS " +
                                        std::string(is_strict ? "MP_HOST_MODE=strict " : "") +
                                        name + "='" + value + "'");
    CAPTURE(output);
    CHECK(times(output, is_strict ? "mode: strict, seed 1\n" : "mode: plain, seed 0\n") == 1);
    CHECK(times(output, "workers: " + std::to_string(processors) + "\n") == 1);
    CHECK(times(output, "mpcore: warn: " + name + " = " + value + ": " + rule +
                            "; using the default\n") == 1);
    CHECK(times(output, "mpcore: warn: ") == 1);
  }
}
