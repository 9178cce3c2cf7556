// Runs this test program again, for environment variables that the library reads once per process.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "catch.h"

namespace mptest {

/// Returns the output of the test, including the log, in a new process with these variables:
/// "NAME=value ...", after any options of env.  The test may be a hidden one.  MP_TEST_EMULATOR is
/// the command that runs this program, if the processor cannot.
inline std::string output_of_test(const std::string &name, const std::string &variables) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const char *const emulator = std::getenv("MP_TEST_EMULATOR");
  const std::string command = "env " + variables + " " + (emulator == nullptr ? "" : emulator) +
                              " '" + program + "' '" + name + "' 2>&1";
  std::FILE *const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  char block[4096];
  while (const size_t bytes = std::fread(block, 1, sizeof block, pipe)) output.append(block, bytes);
  CHECK(pclose(pipe) == 0);
  return output;
}

/// Number of occurrences of `part` in the text.
inline size_t times(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace mptest
