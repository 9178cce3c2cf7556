// Row of the optimizer step, or of a part of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/timing/counts.h"
#include "row.h"

namespace mpbench {

struct StepRow {
  std::string op, layout;
  int64_t tensors, parameters;
  int64_t bytes_per_parameter;  ///< minimum for the algorithm
  int64_t sets;
  Timing timing;
  CopyBeside copy;
  std::vector<PeerResult> peers;      ///< the first one is shown in the table
  std::optional<Counts> counts = {};  ///< replace times
};

std::string heading_of(const StepRow &row);
std::string line_of(const StepRow &row, const std::optional<Peak> &peak);
Json json_of(const StepRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
