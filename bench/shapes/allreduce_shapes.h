// A line of the file of all-reduces -> so many gradients.
#pragma once

#include "shapes.h"

namespace mpbench {

struct AllReduceShape {
  std::string set;  ///< of sets.h
  int64_t elems;

  std::string name() const { return std::to_string(elems) + " elements"; }
  std::string label() const { return shape_label(set, name(), {}); }
  std::string kind() const { return set; }
  /// The ranks of the host target add a thousandth of what they could multiply.
  double effort_flop() const { return 1e2 * static_cast<double>(elems); }
};

/// "num_floats,repeats"
inline AllReduceShape parse_allreduce(std::string_view line) {
  const std::vector<std::string_view> fields = split_line(line, 2);
  if (fields.size() != 2) throw std::runtime_error("a line must be num_floats,repeats");
  return {.set = {}, .elems = parse_field(fields[0])};
}

}  // namespace mpbench
