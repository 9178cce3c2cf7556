// The calls of a training step whose cost on the host is measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/peers/cublaslt.h"
#include "bench/timing/machine.h"
#include "bench/timing/timing.h"
#include "step_ops.h"

namespace mpbench {

struct CallCase {
  std::string call;     ///< "mp_gemm"
  std::string problem;  ///< "4096x4096x4096, named kernel"
  /// Gives the device something to do.  On the host target such a call does that work itself, so
  /// what it takes there is no cost of calling.
  bool enqueues;
  /// One data set for all calls; the work owns it.
  std::function<Work(const Machine &, Pools &)> make;
  /// The same call of cuBLASLt, with data of its own; NULL = there is none.
  std::function<Work(const Machine &, const CublasLt &)> make_peer = nullptr;

  std::string label() const { return call + ", " + problem; }
  /// --quick takes all: they are quick.
  std::string kind() const { return label(); }
  double effort_flop() const { return 0; }
};

std::vector<CallCase> call_cases();

std::vector<CallCase> gemm_call_cases();
std::vector<CallCase> conv_call_cases();

}  // namespace mpbench
