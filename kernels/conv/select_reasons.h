// Reasons for slow convolutions, as clauses for the log.
#pragma once

#include <string>

#include "kernels/conv/problem.h"

namespace mp {

/// Returns a property of the tensors that may slow `problem` down and that the caller can change,
/// or an empty string.
std::string conv_slow_path_reason(const ConvProblem &problem, const Device &device, bool aligned);

}  // namespace mp
