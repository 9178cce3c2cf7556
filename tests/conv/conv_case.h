// A convolution call as plain data that is printed as one line, "op=fprop n=2 h=7 w=9 c=3 k=8 ...",
// and parsed from it: MP_REPRO="<the line>" mptests "[repro-conv]" reruns the case.  Lines of tests
// may also have pad, stride and dilation for all sides and directions, and layer=n,h,w,c,k,r,s.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/output_case.h"

namespace mptest {

struct ConvCase : OutputCase {
  mp_conv_op_t op = MP_CONV_FPROP;
  int32_t n = 1, h = 1, w = 1, c = 1, k = 1, r = 1, s = 1;
  int32_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  int32_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int32_t groups = 1;
  int64_t aux_pad = 0;  ///< row length of aux minus that of the output, in elements
  /// Operands offset by one element more than `offset`: 1, 2 the inputs, d the output, x aux.
  std::string stray;
  bool special_in_second = false;  ///< in the second input (filter; wgrad: dy) instead of the first
};

/// Prints the fields that differ from a default ConvCase.
std::string to_string(const ConvCase &c);
ConvCase conv_case(const std::string &line);
/// Returns the cases of a line with alternatives (case_text.h).
std::vector<ConvCase> conv_cases(const std::string &line);

}  // namespace mptest
