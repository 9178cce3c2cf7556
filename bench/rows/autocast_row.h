// What a rewrite of a graph costs the host.
#pragma once

#include <optional>
#include <string>

#include "row.h"

namespace mpbench {

struct AutocastRow {
  std::string graph;  ///< its shape
  int64_t nodes, tensors;
  int64_t low_nodes, casts;  ///< what the rewrite made of it
  int64_t heap_bytes;        ///< most that the call has in use
  Timing timing;             ///< of the host
};

std::string heading_of(const AutocastRow &row);
std::string line_of(const AutocastRow &row, const std::optional<Peak> &peak);
Json json_of(const AutocastRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
