// Kernel counters as JSON (README.md, Counts).
#pragma once

#include <string>

namespace softgpu::runtime {

/// Returns the counters of all kernels since the process began, with counts per line of PTX.
std::string counts_of_process();

}  // namespace softgpu::runtime
