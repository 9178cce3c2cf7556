// Row of an all-reduce: gradients averaged over several ranks.
#pragma once

#include <optional>
#include <string>

#include "bench/shapes/allreduce_shapes.h"
#include "row.h"

namespace mpbench {

struct AllReduceRow {
  AllReduceShape shape;
  mp_dtype_t dtype;
  int64_t ranks;
  std::string transport;  ///< "NCCL", or "threads" on the host target
  Timing timing;
};

std::string heading_of(const AllReduceRow &row);
std::string line_of(const AllReduceRow &row, const std::optional<Peak> &peak);
Json json_of(const AllReduceRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
