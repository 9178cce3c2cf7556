// Reasons for slow convolutions, as clauses for the log.
#pragma once

#include <string>

#include "kernels/conv/conv_problem.h"

namespace mp {

/// Empty, or a property of the tensors, which the caller can change, that may slow `problem` down.
std::string conv_slow_path_reason(const ConvProblem &problem, const Device &device);

}  // namespace mp
