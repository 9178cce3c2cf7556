// Main functions of this repository's programs: errors, exit codes and --help.
#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace mptools {

/// Invalid command line; what() is the message, without a final period.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Thrown for --help: the text is printed and the exit code is 0.
struct HelpRequest {
  std::string text;
};

/// Returns the exit code of a program that ends with `code`: `code`, but 1 instead of 0 if printed
/// text is lost.
inline int code_after_printing(const char *name, int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "%s: cannot write to standard output\n", name);
  return code != 0 ? code : 1;
}

/// @return the exit code: that of run(), 2 after a UsageError, 1 after another exception
template <typename Run>
int run_guarded(const char *name, Run run) {
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

/// Runs the body of main().  Returns the exit code of run_guarded(), but 1 instead of 0 if printed
/// text is lost.
template <typename Run>
int run_program(const char *name, Run run) {
  return code_after_printing(name, run_guarded(name, run));
}

}  // namespace mptools
