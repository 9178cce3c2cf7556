// Measurements that an earlier mptune wrote with --json, on this device or another one.
#pragma once

#include <filesystem>

#include "measure.h"

namespace mptune {

/// @throws std::runtime_error if the file is missing, is not from mptune, or has an unknown kernel.
Measurements read_measurements(const std::filesystem::path &path);

}  // namespace mptune
