// The optimizer step and its parts, each with data of its own, and the copy they are measured by.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/timing/machine.h"
#include "bench/timing/timing.h"
#include "layouts.h"

namespace mpbench {

/// Random values for gradients and for weights.
struct Pools {
  RandomPool half, single;
};

struct StepOp {
  const char *name;
  int64_t bytes_per_parameter;    ///< moved: each array once for every pass that needs it
  int64_t storage_per_parameter;  ///< of all arrays
  LayoutChoice layouts;
  bool has_torch_peer;
  /// One data set; the work owns it.
  Work (*make)(const Machine &machine, Pools &pools, const Layout &layout);
};

/// The step in its forms, then its passes.
std::vector<StepOp> step_ops();

/// `make` for as many sets as exceed L2, taken in turn.
Work make_rotating(const StepOp &op, const Machine &machine, Pools &pools, const Layout &layout,
                   int64_t sets);

/// A device-to-device copy that reads and writes `bytes_moved` in all.
Work make_copy(const Machine &machine, int64_t bytes_moved);

}  // namespace mpbench
