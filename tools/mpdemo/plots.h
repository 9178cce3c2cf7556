// Pictures of every outcome: where gradients lie in the range of fp16, and how loss and S went.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report.h"

namespace mpdemo {

/// Writes data files and the gnuplot script plots.gp into `directory` and runs gnuplot there.
/// @return one line for the user: the pictures, or why there are none.
std::string write_plots(const std::filesystem::path &directory,
                        const std::vector<Experiment> &experiments);

}  // namespace mpdemo
