// The command line of mpdemo.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>

#include "mpcore.h"

namespace mpdemo {

struct Options {
  int32_t device = MP_DEVICE_AUTO;
  int64_t epochs = 3;
  uint64_t seed = 1;
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  std::filesystem::path out = "build/demo";
  bool json = false;
  bool help = false;
};

/// One sentence for the user; the exit code is 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws UsageError
Options parse_options(int argc, const char *const *argv);

const char *usage();

}  // namespace mpdemo
