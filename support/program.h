// What the programs of this repository have in common around their main functions.
#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace mptools {

/// A wrong command line; what() is one sentence.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown where --help was asked for: the text is printed and the program ends well.
struct HelpRequest {
  std::string text;
};

/// @return the exit code: that of run(), 2 after a UsageError, 1 after another exception
template <typename Run>
int run_program(const char *name, Run run) {
  try {
    return run();
  } catch (const HelpRequest &help) {
    std::fputs(help.text.c_str(), stdout);
    return 0;
  } catch (const UsageError &error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace mptools
