// Passes that form a step, and passes around it, each as a separate call.
#pragma once

#include <vector>

#include "step_ops.h"

namespace mpbench {

std::vector<StepOp> pass_ops();

}  // namespace mpbench
