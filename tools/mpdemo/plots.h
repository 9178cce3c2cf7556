// Pictures of every outcome: histogram of gradients in the range of fp16, and curves of loss and S.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report.h"

namespace mpdemo {

/// Writes data files and the gnuplot script plots.gp into `directory` and runs gnuplot there.
/// @return one line for the user: the pictures, or the reason why there are none.
std::string write_plots(const std::filesystem::path &directory,
                        const std::vector<Experiment> &experiments);

}  // namespace mpdemo
