// The passes that a step is made of, and those around it, each as a call of its own.
#pragma once

#include <vector>

#include "step_ops.h"

namespace mpbench {

std::vector<StepOp> pass_ops();

}  // namespace mpbench
