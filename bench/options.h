// The command line of mpbench.
#pragma once

#include <cstdint>
#include <string>

#include "common/arguments.h"
#include "mpcore.h"

namespace mpbench {

using mptools::UsageError;

struct Options {
  bool gemm = true;
  bool conv = true;
  bool step = true;
  int32_t device = MP_DEVICE_AUTO;
  std::string set = "all";
  std::string grep;
  int64_t limit = 0;  ///< 0 = all
  mp_dtype_t dtype = MP_FP16;
  mp_dtype_t out_dtype = MP_DTYPE_NONE;  ///< NONE = see Shape::is_wgrad
  bool rank = false;
  std::string json;  ///< empty = none, "-" = stdout
  std::string home = "bench";
  bool help = false;
  std::string command;  ///< as it was typed
};

/// @throws UsageError
Options parse_options(int argc, const char *const *argv);

const char *usage();

}  // namespace mpbench
