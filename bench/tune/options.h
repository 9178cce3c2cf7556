// Command line of mptune.
#pragma once

#include <cstdint>
#include <string>

#include "mpcore.h"

namespace mptune {

struct Options {
  int32_t device = MP_DEVICE_AUTO;
  std::string set = "grid";
  bool quick = false;
  double minutes = 0;   ///< 0: no limit
  std::string from;     ///< file of measurements; empty = measure
  std::string predict;  ///< device class; empty = measure
  std::string out = "build/tuning.txt";
  std::string json;  ///< empty = none, "-" = stdout, which moves the report to stderr
  std::string home = "bench";
  std::string command;  ///< command line as typed
};

/// @throws mptools::UsageError, mptools::HelpRequest
Options parse_options(int argc, const char *const *argv);

}  // namespace mptune
