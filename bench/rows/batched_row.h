// Row of a batched or grouped GEMM.
#pragma once

#include "bench/shapes/batched_shapes.h"
#include "figures.h"

namespace mpbench {

struct BatchedRow {
  BatchedShape shape;
  Figures figures;  ///< times and bytes of all matrices
};

std::string heading_of(const BatchedRow &row);
std::string line_of(const BatchedRow &row, const std::optional<Peak> &peak);
Json json_of(const BatchedRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
