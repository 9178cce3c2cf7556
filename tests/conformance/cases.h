// The cases of one target.
#pragma once

#include "harness.h"

// function, name, whether it requires code for sm_90a
#define CONFORMANCE_CASES(X)                        \
  X(conversions, "conversions", false)              \
  X(math, "math", false)                            \
  X(shuffles, "shuffles", false)                    \
  X(reductions, "reductions", false)                \
  X(atomics, "atomics", false)                      \
  X(early_launches, "early launches", false)        \
  X(sorts, "sorts", false)                          \
  X(maxima, "maxima", false)                        \
  X(async_copies, "async copies", false)            \
  X(vectors, "vectors", false)                      \
  X(wmma, "wmma", false)                            \
  X(mma, "mma", false)                              \
  X(barriers, "barriers", true)                     \
  X(tma_load, "tma load", true)                     \
  X(tma_store, "tma store", true)                   \
  X(tma_matrix, "tma matrix", true)                 \
  X(tma_stored_maps, "tma stored maps", true)       \
  X(im2col, "im2col", true)                         \
  X(overlapping_pixels, "overlapping pixels", true) \
  X(im2col_store, "im2col store", true)             \
  X(multicast, "multicast", true)                   \
  X(wgmma, "wgmma", true)                           \
  X(stmatrix, "stmatrix", true)

namespace mp::MP_TARGET {

#define DECLARE_CASE(function, name, needs_sm90) Output conform_##function(const Device &, Mistake);
CONFORMANCE_CASES(DECLARE_CASE)

}  // namespace mp::MP_TARGET
