// The command line: nothing, or one problem.
#pragma once

#include <string>
#include <vector>

#include "support/arguments.h"

namespace mpinfo {

using mptools::UsageError;

struct Options {
  bool help = false;
  bool json = false;
  bool all = false;
  int32_t device = MP_DEVICE_AUTO;

  enum class Problem { none, gemm, conv };
  Problem problem = Problem::none;
  mp_gemm_desc_t gemm;
  mp_conv2d_desc_t conv;
  std::vector<mp_conv_op_t> passes = {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD};
};

/// @throws UsageError
Options parse_options(int argc, const char *const *argv);

const char *usage();

}  // namespace mpinfo
