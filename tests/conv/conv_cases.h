// Convolutions of the tests: a call as plain data, and typical, awkward and generated calls.
//
// A case is printed as one line, "op=fprop n=2 h=7 w=9 c=3 k=8 ...", and parsed from it:
// MP_REPRO="<the line>" mptests "[repro-conv]" reruns the case.  Lines of tests may also have pad,
// stride and dilation for all sides and directions, and layer=n,h,w,c,k,r,s.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/input_values.h"
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

  int64_t p() const { return outputs(pad_top + h + pad_bottom, r, stride_h, dilation_h); }
  int64_t q() const { return outputs(pad_left + w + pad_right, s, stride_w, dilation_w); }
  int64_t pixels() const { return n * p() * q(); }
  int64_t group_c() const { return c / groups; }
  int64_t group_k() const { return k / groups; }
  int64_t elements_of_x() const { return int64_t{n} * h * w * c; }
  int64_t elements_of_y() const { return pixels() * k; }
  int64_t elements_of_filter() const { return int64_t{k} * r * s * group_c(); }

  static int64_t outputs(int64_t padded, int64_t filter, int64_t stride, int64_t dilation) {
    const int64_t covered = dilation * (filter - 1) + 1;
    return padded < covered ? 0 : (padded - covered) / stride + 1;
  }
};

/// Prints the fields that differ from a default ConvCase.
std::string to_string(const ConvCase &c);
ConvCase conv_case(const std::string &line);
/// Returns the cases of a line with alternatives (case_text.h).
std::vector<ConvCase> conv_cases(const std::string &line);

/// Typical layers of networks.
inline const std::vector<std::string> kUsualConvs = {
    "layer=2,9,11,16,24,3,3 pad=1",
    "layer=2,10,9,8,16,3,3 pad=1 stride=2",
    "layer=2,7,9,24,40,1,1",                  // GEMM
    "layer=3,7,8,16,32,1,1 stride=2",         // projection
    "layer=1,23,21,3,16,7,7 pad=3 stride=2",  // first layer, RGB
    "layer=1,9,10,4,8,3,3 pad=1",
    "layer=1,9,10,1,8,5,5 pad=2",             // grey
    "layer=1,15,30,1,16,5,20 stride=2",       // speech
    "layer=2,8,9,16,16,3,3 groups=16 pad=1",  // depthwise
    "layer=2,8,9,8,24,3,3 groups=8 pad=1",    // multiplier 3
    "layer=1,9,9,16,16,5,5 groups=16 pad=2 stride=2",
    "layer=2,7,8,32,32,3,3 groups=4 pad=1",                   // ResNeXt
    "layer=1,7,8,9,15,3,3 groups=3 pad=1",                    // odd channels
    "layer=2,6,7,16,13,3,3 pad=1",                            // odd K
    "layer=3,1,40,16,16,1,5 pad_left=2 pad_right=2",          // 1-D
    "layer=1,1,40,8,16,1,3 pad_left=8 dilation_w=4",          // 1-D, causal
    "layer=1,11,12,8,8,3,3 pad=2 dilation=2",                 // atrous
    "layer=2,8,9,8,8,3,3 pad_bottom=1 pad_right=1 stride=2",  // "same", stride 2
};

/// Shapes at the boundaries of index arithmetic.
inline const std::vector<std::string> kAwkwardConvs = {
    "layer=2,3,4,8,8,5,3",                                  // P = 0
    "layer=2,5,3,8,8,3,4",                                  // Q = 0
    "layer=2,3,4,8,8,5,6 pad=1",                            // larger than the image, P = 1
    "layer=1,2,2,8,16,7,7 pad=3",                           // larger by several pixels
    "layer=2,5,4,8,8,5,4",                                  // exactly the image
    "layer=2,5,5,8,8,3,3 dilation_h=3 dilation_w=2",        // P = 0 by dilation
    "layer=1,4,5,8,8,3,3 pad=4 dilation_h=4 dilation_w=3",  // taps that never coincide
    "layer=2,10,11,8,8,2,1 stride_h=3 stride_w=4",          // stride > filter
    "layer=2,5,6,8,8,3,3 stride_h=7 stride_w=9",            // stride > image
    "layer=2,6,7,8,8,3,3 pad=1 stride_h=3 stride_w=2",      // unequal strides
    "layer=1,9,8,8,8,3,3 pad=2 stride_h=2 stride_w=3 dilation_h=2 dilation_w=3",
    "layer=1,9,8,8,8,3,2 pad=3 stride=2 dilation=2",  // common factor
    "layer=1,4,5,8,8,3,3 pad=5",                      // outputs that read only zeros
    "layer=1,4,5,8,8,1,1 pad=2",                      // 1 x 1 with padding
    "layer=1,5,6,8,8,3,3 pad_bottom=2 pad_left=1",
    "layer=1,5,6,8,8,2,4 pad_top=3 pad_right=1",
    "layer=1,1,1,1,1,1,1",
    "layer=1,1,1,5,7,3,3 pad=1",
    "layer=0,4,4,8,8,3,3",        // no images
    "layer=1,5,5,3,1,3,3 pad=1",  // one output channel
    "layer=1,5,5,2,3,2,2 pad=1",
    "layer=1,5,5,5,5,3,3 groups=5 pad=1",  // odd depthwise
    "layer=1,5,5,6,3,3,3 groups=3 pad=1",  // fewer outputs than inputs
    "layer=2,4,5,16,24,1,1 groups=2",      // grouped 1 x 1
    "layer=1,9,9,12,18,3,3 groups=6 pad_top=2 pad_left=1 pad_right=3 stride_w=2 dilation_h=2",
};

/// Shapes with more than one tile of every kernel in every direction, with partial tiles.
inline const std::vector<std::string> kLargeConvs = {
    "layer=2,13,14,24,136,3,3 pad=1",
    "layer=3,17,15,136,72,3,3 pad=1 stride=2",
    "layer=2,17,16,72,264,1,1",
    "layer=1,65,67,3,72,7,7 pad=3 stride=2",
    "layer=2,14,15,144,144,3,3 groups=144 pad=1",
    "layer=1,14,15,80,160,3,3 groups=2 pad=1",
    "layer=4,30,31,8,16,3,3 pad=1",  // a long sum in wgrad
    "layer=2,1,300,24,40,1,9 pad_left=4 pad_right=4",
};

/// Returns a random shape, types, scalars and alignment, with at most `most_products` products.
ConvCase random_conv(Random &random, int64_t most_products);
/// Also returns a random epilogue that the pass supports.
ConvCase random_conv_with_epilogue(Random &random, int64_t most_products);

}  // namespace mptest
