// Row of a GEMM.
#pragma once

#include "bench/shapes/shapes.h"
#include "figures.h"

namespace mpbench {

struct GemmRow {
  Shape shape;
  Figures figures;
};

std::string heading_of(const GemmRow &row);
std::string line_of(const GemmRow &row, const std::optional<Peak> &peak);
Json json_of(const GemmRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
