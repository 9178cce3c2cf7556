// Runs one GEMM or convolution for profilers, without other similar work.
#pragma once

#include "bench/options.h"
#include "bench/timing/machine.h"

namespace mpbench {

/// Runs the call that --once names on the bench's data, waits, and prints the kernel.
/// @throws std::runtime_error if there is no shape with this name.
void call_once(const Options &options, const Machine &machine);

}  // namespace mpbench
