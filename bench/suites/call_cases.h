// Calls of a training step whose host time is measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/peers/cublas.h"
#include "bench/timing/machine.h"
#include "bench/timing/timing.h"
#include "step_ops.h"

namespace mpbench {

struct CallCase {
  std::string call;     ///< e.g. "mp_gemm"
  std::string problem;  ///< e.g. "4096x4096x4096, named kernel"
  /// True if the call enqueues device work.  On the host target such a call executes the work
  /// itself, so its time is not call overhead.
  bool enqueues;
  /// Creates work with one data set for all calls; the work owns the data.
  std::function<Work(const Machine &, Pools &)> make;
  /// Creates the same call of cuBLASLt with separate data; NULL = there is none.
  std::function<Work(const Machine &, const CublasLt &)> make_peer = nullptr;

  std::string label() const { return call + ", " + problem; }
  /// Each case is its own kind: --quick runs all, since they are short.
  std::string kind() const { return label(); }
  double effort_flop() const { return 0; }
};

std::vector<CallCase> call_cases();

}  // namespace mpbench
