// What the machine itself can do, measured in the same run as what is compared with it.
#pragma once

#include <optional>
#include <string>

#include "bench/timing/timing.h"

namespace mpbench {

struct MachineRate {
  std::string name, unit;
  std::string how;               ///< or why it was not measured
  double amount;                 ///< of 1e9 or 1e12 units, per call
  std::optional<Timing> timing;  ///< empty = not measured

  double rate() const { return amount / timing->median_us * 1e6; }
};

class Report;
struct Options;

/// A copy, a pass that only reads, mma.sync and wgmma: in the report, each with what it was or why not.
void measure_peaks(const Options &options, const Machine &machine, Report &report);

}  // namespace mpbench
