// Row of one pass of a convolution.
#pragma once

#include "bench/shapes/conv_shapes.h"
#include "figures.h"

namespace mpbench {

struct ConvRow {
  ConvShape shape;
  Figures figures;
};

std::string heading_of(const ConvRow &row);
std::string line_of(const ConvRow &row, const std::optional<Peak> &peak);
Json json_of(const ConvRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
