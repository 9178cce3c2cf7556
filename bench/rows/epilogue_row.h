// Row of a GEMM with an epilogue.
#pragma once

#include "bench/shapes/epilogue_shapes.h"
#include "figures.h"

namespace mpbench {

struct EpilogueRow {
  EpilogueShape shape;
  Figures figures;
};

std::string heading_of(const EpilogueRow &row);
std::string line_of(const EpilogueRow &row, const std::optional<Peak> &peak);
Json json_of(const EpilogueRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
