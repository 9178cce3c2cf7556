// Convolutions of the tests: typical, awkward and generated ones.
#pragma once

#include <cstdint>
#include <vector>

#include "conv_case.h"
#include "tests/support/input_values.h"

namespace mptest {

constexpr mp_conv_op_t kConvOps[] = {MP_CONV_FPROP, MP_CONV_DGRAD, MP_CONV_WGRAD};

inline ConvCase conv_case(int32_t n, int32_t h, int32_t w, int32_t c, int32_t k, int32_t r,
                          int32_t s) {
  ConvCase v;
  v.n = n;
  v.h = h;
  v.w = w;
  v.c = c;
  v.k = k;
  v.r = r;
  v.s = s;
  return v;
}

inline ConvCase padded(ConvCase v, int32_t top, int32_t bottom, int32_t left, int32_t right) {
  v.pad_top = top;
  v.pad_bottom = bottom;
  v.pad_left = left;
  v.pad_right = right;
  return v;
}
inline ConvCase padded(const ConvCase &v, int32_t all) {
  return padded(v, all, all, all, all);
}
inline ConvCase strided(ConvCase v, int32_t h, int32_t w) {
  v.stride_h = h;
  v.stride_w = w;
  return v;
}
inline ConvCase dilated(ConvCase v, int32_t h, int32_t w) {
  v.dilation_h = h;
  v.dilation_w = w;
  return v;
}
inline ConvCase grouped(ConvCase v, int32_t groups) {
  v.groups = groups;
  return v;
}
inline ConvCase with(ConvCase v, mp_conv_op_t op, const Types &types) {
  v.op = op;
  v.ab = types.ab;
  v.cd = types.cd;
  return v;
}

/// Typical layers of networks.
inline std::vector<ConvCase> usual_convs() {
  return {
      padded(conv_case(2, 9, 11, 16, 24, 3, 3), 1),
      strided(padded(conv_case(2, 10, 9, 8, 16, 3, 3), 1), 2, 2),
      conv_case(2, 7, 9, 24, 40, 1, 1),                             // GEMM
      strided(conv_case(3, 7, 8, 16, 32, 1, 1), 2, 2),              // projection
      strided(padded(conv_case(1, 23, 21, 3, 16, 7, 7), 3), 2, 2),  // first layer, RGB
      padded(conv_case(1, 9, 10, 4, 8, 3, 3), 1),
      padded(conv_case(1, 9, 10, 1, 8, 5, 5), 2),                // grey
      strided(conv_case(1, 15, 30, 1, 16, 5, 20), 2, 2),         // speech
      grouped(padded(conv_case(2, 8, 9, 16, 16, 3, 3), 1), 16),  // depthwise
      grouped(padded(conv_case(2, 8, 9, 8, 24, 3, 3), 1), 8),    // multiplier 3
      grouped(strided(padded(conv_case(1, 9, 9, 16, 16, 5, 5), 2), 2, 2), 16),
      grouped(padded(conv_case(2, 7, 8, 32, 32, 3, 3), 1), 4),              // ResNeXt
      grouped(padded(conv_case(1, 7, 8, 9, 15, 3, 3), 1), 3),               // odd channels
      padded(conv_case(2, 6, 7, 16, 13, 3, 3), 1),                          // odd K
      padded(conv_case(3, 1, 40, 16, 16, 1, 5), 0, 0, 2, 2),                // 1-D
      dilated(padded(conv_case(1, 1, 40, 8, 16, 1, 3), 0, 0, 8, 0), 1, 4),  // 1-D, causal
      dilated(padded(conv_case(1, 11, 12, 8, 8, 3, 3), 2), 2, 2),           // atrous
      strided(padded(conv_case(2, 8, 9, 8, 8, 3, 3), 0, 1, 0, 1), 2, 2),    // "same", stride 2
  };
}

/// Shapes at the boundaries of index arithmetic.
inline std::vector<ConvCase> awkward_convs() {
  return {
      conv_case(2, 3, 4, 8, 8, 5, 3),                            // P = 0
      conv_case(2, 5, 3, 8, 8, 3, 4),                            // Q = 0
      padded(conv_case(2, 3, 4, 8, 8, 5, 6), 1),                 // larger than the image, P = 1
      padded(conv_case(1, 2, 2, 8, 16, 7, 7), 3),                // larger by several pixels
      conv_case(2, 5, 4, 8, 8, 5, 4),                            // exactly the image
      dilated(conv_case(2, 5, 5, 8, 8, 3, 3), 3, 2),             // P = 0 by dilation
      dilated(padded(conv_case(1, 4, 5, 8, 8, 3, 3), 4), 4, 3),  // taps that never coincide
      strided(conv_case(2, 10, 11, 8, 8, 2, 1), 3, 4),           // stride > filter
      strided(conv_case(2, 5, 6, 8, 8, 3, 3), 7, 9),             // stride > image
      strided(padded(conv_case(2, 6, 7, 8, 8, 3, 3), 1), 3, 2),  // unequal strides
      strided(dilated(padded(conv_case(1, 9, 8, 8, 8, 3, 3), 2), 2, 3), 2, 3),
      strided(dilated(padded(conv_case(1, 9, 8, 8, 8, 3, 2), 3), 2, 2), 2, 2),  // common factor
      padded(conv_case(1, 4, 5, 8, 8, 3, 3), 5),  // outputs that read only zeros
      padded(conv_case(1, 4, 5, 8, 8, 1, 1), 2),  // 1 x 1 with padding
      padded(conv_case(1, 5, 6, 8, 8, 3, 3), 0, 2, 1, 0),
      padded(conv_case(1, 5, 6, 8, 8, 2, 4), 3, 0, 0, 1),
      conv_case(1, 1, 1, 1, 1, 1, 1),
      padded(conv_case(1, 1, 1, 5, 7, 3, 3), 1),
      conv_case(0, 4, 4, 8, 8, 3, 3),             // no images
      padded(conv_case(1, 5, 5, 3, 1, 3, 3), 1),  // one output channel
      padded(conv_case(1, 5, 5, 2, 3, 2, 2), 1),
      grouped(padded(conv_case(1, 5, 5, 5, 5, 3, 3), 1), 5),  // odd depthwise
      grouped(padded(conv_case(1, 5, 5, 6, 3, 3, 3), 1), 3),  // fewer outputs than inputs
      grouped(conv_case(2, 4, 5, 16, 24, 1, 1), 2),           // grouped 1 x 1
      grouped(strided(dilated(padded(conv_case(1, 9, 9, 12, 18, 3, 3), 2, 0, 1, 3), 2, 1), 1, 2),
              6),
  };
}

/// Shapes with more than one tile of every kernel in every direction, with partial tiles.
inline std::vector<ConvCase> large_convs() {
  return {
      padded(conv_case(2, 13, 14, 24, 136, 3, 3), 1),
      strided(padded(conv_case(3, 17, 15, 136, 72, 3, 3), 1), 2, 2),
      conv_case(2, 17, 16, 72, 264, 1, 1),
      strided(padded(conv_case(1, 65, 67, 3, 72, 7, 7), 3), 2, 2),
      grouped(padded(conv_case(2, 14, 15, 144, 144, 3, 3), 1), 144),
      grouped(padded(conv_case(1, 14, 15, 80, 160, 3, 3), 1), 2),
      padded(conv_case(4, 30, 31, 8, 16, 3, 3), 1),  // a long sum in wgrad
      padded(conv_case(2, 1, 300, 24, 40, 1, 9), 0, 0, 4, 4),
  };
}

/// Returns a random shape, types, scalars and alignment, with at most `most_products` products.
ConvCase random_conv(Random &random, int64_t most_products);
/// Also returns a random epilogue that the pass supports.
ConvCase random_conv_with_epilogue(Random &random, int64_t most_products);

}  // namespace mptest
