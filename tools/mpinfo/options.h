// Command line: no arguments, a problem, or the doctor.
#pragma once

#include <string>
#include <vector>

#include "mpcore.h"

namespace mpinfo {

struct Options {
  bool json = false;
  bool all = false;
  bool doctor = false;
  bool explains = false;  ///< the plan, not all kernels
  int32_t device = MP_DEVICE_AUTO;

  enum class Problem { none, gemm, conv, attention };
  Problem problem = Problem::none;
  mp_gemm_desc_t gemm;
  mp_conv2d_desc_t conv;
  mp_attention_desc_t attention;
  std::vector<mp_conv_op_t> passes = {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD};
};

/// @throws mptools::UsageError, mptools::HelpRequest
Options parse_options(int argc, const char *const *argv);

}  // namespace mpinfo
