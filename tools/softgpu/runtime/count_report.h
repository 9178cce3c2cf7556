// Counts of kernels as JSON (README.md, Counts).
#pragma once

#include <string>

namespace softgpu::runtime {

/// What every kernel has executed since the process began, with a list by line of PTX.
std::string counts_of_process();

}  // namespace softgpu::runtime
