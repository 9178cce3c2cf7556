// Row of one phase of a program's startup, until its first result.
#pragma once

#include <optional>
#include <string>

#include "row.h"

namespace mpbench {

struct StartupRow {
  std::string phase;  ///< "load", ...
  std::string what;   ///< function called in the phase
  int64_t edge;       ///< edge of the square GEMM
  int64_t library_bytes;
  Timing timing;  ///< a batch is one process
};

std::string heading_of(const StartupRow &row);
std::string line_of(const StartupRow &row, const std::optional<Peak> &peak);
Json json_of(const StartupRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
