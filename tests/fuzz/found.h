// Reports a finding to libFuzzer.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace fuzz {

/// Ends the process, which libFuzzer records as a finding.
[[noreturn]] inline void found(const char *what, const char *detail) {
  std::fprintf(stderr, "fuzz: %s: %s\n", what, detail);
  std::abort();
}

}  // namespace fuzz
