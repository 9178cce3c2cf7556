// Why a choice takes longer than it could, in the words of the log.
#pragma once

#include <string>

#include "kernels/conv/problem.h"

namespace mp {

/// Empty, or a property of the tensors, which the caller can change, that may slow `problem` down.
std::string conv_slow_path_reason(const ConvProblem &problem, const Device &device, bool aligned);

}  // namespace mp
