// Measurements that an earlier mptune wrote with --json, on this device or another.
#pragma once

#include <filesystem>

#include "measure.h"

namespace mptune {

/// @throws std::runtime_error where the file is missing, is not of mptune, or has a kernel that this
///         mptune does not know.
Measurements read_measurements(const std::filesystem::path &path);

}  // namespace mptune
