// Row of the GEMMs of one pass of a recurrent layer.
#pragma once

#include "bench/shapes/rnn_shapes.h"
#include "figures.h"

namespace mpbench {

struct RnnRow {
  RnnShape shape;
  Figures figures;  ///< times and bytes of all GEMMs
};

std::string heading_of(const RnnRow &row);
std::string line_of(const RnnRow &row, const std::optional<Peak> &peak);
Json json_of(const RnnRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
