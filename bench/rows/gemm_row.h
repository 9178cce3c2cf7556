// One GEMM of the results, or several of one shape after each other.
#pragma once

#include <optional>
#include <string>

#include "bench/shapes/shapes.h"
#include "product_row.h"

namespace mpbench {

using GemmRow = ProductRow<Shape, mp_gemm_desc_t>;

std::string heading_of(const GemmRow &row);
std::string line_of(const GemmRow &row, const std::optional<Peak> &peak);
Json json_of(const GemmRow &row, const std::optional<Peak> &peak);

/// What does not tell the shape, for rows that tell it otherwise.
std::string figures_heading();
std::string figures_text(const GemmRow &row, const std::optional<Peak> &peak);
void add_figures(Json &json, const GemmRow &row, const std::optional<Peak> &peak);

}  // namespace mpbench
