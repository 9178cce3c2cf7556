// The optimizer step and its parts, each with separate data, and the copy that they are compared
// with.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/timing/machine.h"
#include "bench/timing/timing.h"
#include "layouts.h"

namespace mpbench {

/// Random values of gradients and weights.
struct Pools {
  RandomPool half, single;
};

struct StepOp {
  const char *name;
  int64_t bytes_per_parameter;    ///< memory traffic: each array once per pass that needs it
  int64_t storage_per_parameter;  ///< size of all arrays
  LayoutChoice layouts;
  bool has_torch_peer;
  /// Creates work with one data set, which the work owns.
  std::function<Work(const Machine &machine, Pools &pools, const Layout &layout)> make;
};

/// Returns the variants of the step, then its passes.
std::vector<StepOp> step_ops();

/// Creates work that cycles through as many data sets as exceed L2.
Work make_rotating(const StepOp &op, const Machine &machine, Pools &pools, const Layout &layout,
                   int64_t sets);

/// A device-to-device copy that reads and writes `bytes_moved` in total.
Work make_copy(const Machine &machine, int64_t bytes_moved);

}  // namespace mpbench
