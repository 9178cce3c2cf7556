// One pass of a convolution.
#pragma once

#include <optional>
#include <string>

#include "bench/shapes/conv_shapes.h"
#include "product_row.h"

namespace mpbench {

using ConvRow = ProductRow<ConvShape, mp_conv2d_desc_t>;

std::string heading_of(const ConvRow &row);
std::string line_of(const ConvRow &row, const std::optional<Peak> &peak);
Json json_of(const ConvRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
