// Shapes of the all-reduce benchmark: numbers of gradients.
#pragma once

#include "shapes.h"

namespace mpbench {

struct AllReduceShape {
  std::string set = {};  ///< name in sets.h
  int64_t elems;

  std::string name() const { return std::to_string(elems) + " elements"; }
  std::string label() const { return shape_label(set, name(), {}); }
  std::string kind() const { return set; }
  /// Ranks of the host target add at a thousandth of the rate of GEMM operations.
  double effort_flop() const { return 1e2 * static_cast<double>(elems); }
};

/// Parses "num_floats,repeats".
inline AllReduceShape parse_allreduce(std::string_view line) {
  const std::vector<std::string_view> fields = split_line(line, 2);
  if (fields.size() != 2) throw std::runtime_error("a line must be num_floats,repeats");
  return {.elems = parse_field(fields[0])};
}

}  // namespace mpbench
