// Hardware limits, measured in the same run as the results that are compared with them.
#pragma once

#include "bench/timing/machine.h"

namespace mpbench {

class Report;
struct Options;

/// Measures a copy, a read-only pass, mma.sync and wgmma; reports each rate or the reason why it is
/// not measured.
void measure_peaks(const Options &options, const Machine &machine, Report &report);

}  // namespace mpbench
