// The products of one pass of a recurrent layer.
#pragma once

#include <optional>
#include <string>

#include "bench/shapes/rnn_shapes.h"
#include "gemm_row.h"

namespace mpbench {

struct RnnRow {
  RnnShape shape;
  GemmRow products;  ///< times and bytes of all of them
};

std::string heading_of(const RnnRow &row);
std::string line_of(const RnnRow &row, const std::optional<Peak> &peak);
Json json_of(const RnnRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
