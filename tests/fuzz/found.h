// How a fuzzer reports.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace fuzz {

/// Ends the process, as libFuzzer wants to see a finding.
[[noreturn]] inline void found(const char *what, const char *detail) {
  std::fprintf(stderr, "fuzz: %s: %s\n", what, detail);
  std::abort();
}

}  // namespace fuzz
