// Output of a shell command.
#pragma once

#include <cstdio>
#include <string>

namespace mpbench {

/// Returns stdout of a shell command; empty if it fails or does not exist.
inline std::string output_of(const std::string &command) {
  std::FILE *const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string output;
  char block[4096];
  while (const size_t count = std::fread(block, 1, sizeof block, pipe)) output.append(block, count);
  return pclose(pipe) == 0 ? output : std::string();
}

}  // namespace mpbench
