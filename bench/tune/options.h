// The command line of mptune.
#pragma once

#include <cstdint>
#include <string>

#include "mpcore.h"
#include "support/arguments.h"

namespace mptune {

using mptools::UsageError;

struct Options {
  int32_t device = MP_DEVICE_AUTO;
  std::string set = "grid";
  bool quick = false;
  std::string from;     ///< a file of measurements; empty = measure
  std::string predict;  ///< a device class; empty = measure
  std::string out = "build/tuning.txt";
  std::string json;  ///< empty = none, "-" = stdout, then the report is on stderr
  std::string home = "bench";
  bool help = false;
  std::string command;  ///< as it was typed
};

/// @throws UsageError
Options parse_options(int argc, const char *const *argv);

const char *usage();

}  // namespace mptune
