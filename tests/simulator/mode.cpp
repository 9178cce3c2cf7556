// MP_HOST_MODE, and MP_HOST_MOOD as it was called before.  The environment is read once per process,
// so each case is a process of its own: this program again, with a hidden test that prints the mode.
#include <cstdio>
#include <filesystem>

#include "testing.h"

using namespace mptest;

namespace {

/// What the hidden test prints, warnings included, with only these variables set.
std::string mode_with(const std::string &variables) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "env -u MP_HOST_MODE -u MP_HOST_MOOD -u MP_HOST_SEED " + variables +
                              " '" + program + "' 'the mode of this process' 2>&1";
  std::FILE *const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  char block[4096];
  while (const size_t bytes = std::fread(block, 1, sizeof block, pipe)) output.append(block, bytes);
  CHECK(pclose(pipe) == 0);
  return output;
}

constexpr char kWarning[] = "mpcore: warn: MP_HOST_MOOD is deprecated, its name is MP_HOST_MODE\n";

void check_mode(const std::string &variables, const std::string &expected, size_t num_warnings) {
  const std::string output = mode_with(variables);
  INFO(variables << ": " << output);
  CHECK(output.find("mode: " + expected + "\n") != std::string::npos);
  size_t warnings = 0;
  for (size_t at = output.find(kWarning); at != std::string::npos;
       at = output.find(kWarning, at + 1))
    warnings++;
  CHECK(warnings == num_warnings);
}

}  // namespace

TEST_CASE("the mode of this process", "[.]") {
  for (int reads = 0; reads < 2; reads++)
    std::printf("mode: %s, seed %d\n", engine::mode().strict ? "strict" : "plain",
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
