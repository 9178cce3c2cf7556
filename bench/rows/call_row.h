// Row of an API call: host time.
#pragma once

#include <optional>
#include <string>

#include "row.h"

namespace mpbench {

struct CallRow {
  std::string call, problem;
  Timing timing;  ///< host time until the call returns
  std::optional<PeerResult> peer;
};

std::string heading_of(const CallRow &row);
std::string line_of(const CallRow &row, const std::optional<Peak> &peak);
Json json_of(const CallRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
