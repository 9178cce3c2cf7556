// Command line of mpdemo.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "mpcore.h"
#include "settings.h"

namespace mpdemo {

enum class Net { all, mlp, cnn, rows, charlm };

struct Options {
  int32_t device = MP_DEVICE_AUTO;
  Net net = Net::all;
  MixedPrecision mixed;
  bool full = false;
  std::optional<double> epochs;  ///< for ordinary training; none: the network's default
  int ranks = 1;
  uint64_t seed = 1;
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  std::filesystem::path text;  ///< empty: the King James Bible
  std::filesystem::path out;   ///< empty: no files are written
  bool json = false;
};

/// @throws mptools::UsageError, mptools::HelpRequest
Options parse_options(int argc, const char *const *argv);

}  // namespace mpdemo
