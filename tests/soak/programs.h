// Scaler policies and optimizers of the soak tests, and models that predict the scales.
#pragma once

#include <vector>

#include "tests/soak/training.h"
#include "tests/step/upstream_scalers.h"

namespace mptest {

struct SoakProgram {
  Program program;
  /// Creates the reference model of the policy, in host arithmetic.
  upstream::Update (*model)();
};

std::vector<SoakProgram> soak_programs();

/// Faults of a step, derived only from the seed and the step's number.
Fault fault_of(uint64_t seed, int64_t number);

/// True if the fault overflows with a scale of S.
bool overflows(const Fault &fault, double scale);

}  // namespace mptest
