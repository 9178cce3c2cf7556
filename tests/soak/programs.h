// Which policies are soaked with which rules, and what is known of their scales beforehand.
#pragma once

#include <memory>
#include <vector>

#include "tests/soak/training.h"
#include "tests/step/upstream_scalers.h"

namespace mptest {

struct SoakProgram {
  Program program;
  /// A policy as it is described elsewhere, in the arithmetic of the host.
  std::unique_ptr<upstream::Scaler> (*model)();
};

std::vector<SoakProgram> soak_programs();

/// What happens in a step: it follows from the seed and the step's number alone.
Fault fault_of(uint64_t seed, int64_t number);

/// Whether that overflows with a scale of S.
bool overflows(const Fault &fault, double scale);

}  // namespace mptest
