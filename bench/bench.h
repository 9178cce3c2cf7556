// The families of mpbench.  Each returns false if something went wrong; a note says what.
#pragma once

#include "machine.h"
#include "options.h"
#include "report.h"

namespace mpbench {

/// The ceiling first, then every shape that the options ask for.
bool bench_gemm(const Options &options, const Machine &machine, Report &report);

/// Every convolution that the options ask for.
bool bench_conv(const Options &options, const Machine &machine, Report &report);

/// The optimizer step and its parts, over layouts of 10^5 to 10^9 parameters.
bool bench_step(const Options &options, const Machine &machine, Report &report);

}  // namespace mpbench
