// Row of a graph rewrite by autocast: host time and memory.
#pragma once

#include <optional>
#include <string>

#include "row.h"

namespace mpbench {

struct AutocastRow {
  std::string graph;  ///< kind of graph
  int64_t nodes, tensors;
  int64_t low_nodes, casts;  ///< low-precision nodes and casts after the rewrite
  int64_t heap_bytes;        ///< peak during the call
  Timing timing;             ///< host time
};

std::string heading_of(const AutocastRow &row);
std::string line_of(const AutocastRow &row, const std::optional<Peak> &peak);
Json json_of(const AutocastRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
