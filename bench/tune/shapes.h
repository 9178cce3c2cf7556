// Selection of the measured problems.
#pragma once

#include <vector>

#include "bench/shapes/shapes.h"
#include "bench/timing/machine.h"
#include "options.h"

namespace mptune {

/// @throws std::runtime_error if a file is missing or malformed.
std::vector<mpbench::Shape> shapes_to_measure(const Options &options,
                                              const mpbench::Machine &machine);

}  // namespace mptune
