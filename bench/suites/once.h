// For profilers: one GEMM or convolution, and no other work that looks like it.
#pragma once

#include "bench/options.h"
#include "bench/timing/machine.h"

namespace mpbench {

/// Calls what --once names, on data as the bench has them, waits, and prints the kernel.
/// @throws std::runtime_error if there is none of this name.
void call_once(const Options &options, const Machine &machine);

}  // namespace mpbench
