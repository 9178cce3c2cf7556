// Convolution calls.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/problem.h"
#include "mpcore/conv.h"

namespace mp {

/// Shape of a convolution, with the names of mpcore/conv.h.  p, q > 0.
struct ConvShape {
  int32_t n, h, w, c;
  int32_t k, r, s;
  int32_t p, q;
  int32_t pad_top, pad_left;
  int32_t stride_h, stride_w;
  int32_t dilation_h, dilation_w;
  int32_t groups;

  bool operator==(const ConvShape &) const = default;
};

inline int64_t padded_h(const mp_conv2d_desc_t &d) {
  return int64_t{d.pad_top} + d.h + d.pad_bottom;
}
inline int64_t padded_w(const mp_conv2d_desc_t &d) {
  return int64_t{d.pad_left} + d.w + d.pad_right;
}

/// P and Q of a descriptor; 0 if the filter is larger than the padded image.
struct ConvExtents {
  int64_t p, q;
};
ConvExtents conv_extents(const mp_conv2d_desc_t &);

/// A validated mp_conv2d_* call.  n, p, q > 0: a call without products runs as a GEMM with k = 0.
struct ConvProblem {
  mp_conv_op_t op;
  ConvShape shape;
  mp_dtype_t dtype;   ///< type of image and other
  const void *image;  ///< source of the patches: x; dy in dgrad.  NULL: unknown, counts as aligned
  const void *other;  ///< the filter; dy in wgrad
  Output out;         ///< the written tensor as one matrix
  /// Channels of the written filter if `image` is a copy with padded channels (padded_image.h);
  /// else 0.
  int32_t unpadded_c = 0;
};

/// Returns the written tensor as one matrix.
Output output_matrix(const ConvShape &, mp_conv_op_t);

/// Returns the problem of a valid descriptor, without pointers and epilogue operands.
ConvProblem conv_problem(const mp_conv2d_desc_t &, mp_conv_op_t);

/// Everything that kernel selection reads of a problem: the key of the plan cache.
struct ConvKey {
  mp_conv_op_t op;
  ConvShape shape;
  mp_dtype_t dtype;
  bool image_is_aligned, other_is_aligned;  ///< true: 16-byte aligned
  OutputShape out;

  bool operator==(const ConvKey &) const = default;
  uint64_t hash() const;
};
ConvKey key_of(const ConvProblem &);

}  // namespace mp
