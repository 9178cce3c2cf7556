// Columns with the counts of a row, in place of times.
#pragma once

#include "bench/timing/counts.h"
#include "row.h"

namespace mpbench {

std::string counts_heading();
std::string counts_text(const Counts &counts);
void add_counts(Json &json, const Counts &counts);

}  // namespace mpbench
