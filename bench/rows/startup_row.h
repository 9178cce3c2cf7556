// What a program waits for before its first result.
#pragma once

#include <optional>
#include <string>

#include "row.h"

namespace mpbench {

struct StartupRow {
  std::string phase;  ///< "load", ...
  std::string what;   ///< is called in it
  int64_t edge;       ///< of the square GEMM
  int64_t library_bytes;
  Timing timing;  ///< a batch is a process
};

std::string heading_of(const StartupRow &row);
std::string line_of(const StartupRow &row, const std::optional<Peak> &peak);
Json json_of(const StartupRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
