// What the machine itself can do, measured in the same run as what is compared with it.
#pragma once

#include "bench/timing/machine.h"

namespace mpbench {

class Report;
struct Options;

/// A copy, a pass that only reads, mma.sync and wgmma: in the report, each with what it was or why not.
void measure_peaks(const Options &options, const Machine &machine, Report &report);

}  // namespace mpbench
