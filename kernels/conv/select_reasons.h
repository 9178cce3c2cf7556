// Why a choice takes longer than it could, in the words of the log.
#pragma once

#include <string>

#include "kernels/conv/problem.h"

namespace mp {

/// As of a GEMM: whether they are not worth a warning.
bool copies_are_cheap(const ConvProblem &problem, const ConvChoice &choice, const Device &device,
                      const GemmTuning &tuning);

/// Empty, or the reason, which the caller can change, why `problem` is slower than it could be.
std::string conv_slow_path_reason(const ConvProblem &problem, const Device &device, bool aligned);

}  // namespace mp
