// Convolution problems, plans and kernel selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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
  const void *image;  ///< tensor of the patches: x; dgrad: dy
  const void *other;  ///< filter; wgrad: dy
  Output out;         ///< written tensor as one matrix
  /// Channels without padding if image is a padded copy (padded_image.h), else 0.
  int32_t unpadded_c = 0;

  bool operator==(const ConvProblem &) const = default;
};

/// Returns the written tensor as one matrix.
Output output_matrix(const ConvShape &, mp_conv_op_t);

/// Returns the problem of a valid descriptor, without pointers and epilogue operands.
ConvProblem conv_problem(const mp_conv2d_desc_t &, mp_conv_op_t);

/// Implementation of a convolution:
///
///     gemm         plain GEMM kernel, for 1 x 1 filters
///     implicit     implicit GEMM whose threads load the patches
///     im2col       implicit GEMM whose patches are loaded by im2col TMA
///     depthwise    direct convolution, channel by channel
enum class ConvFamily { gemm, implicit, im2col, depthwise };

struct ConvPlan {
  ConvFamily family;
  /// reads_copies refers to a padded image (padded_image.h).  depthwise: only split_k,
  /// workspace_bytes and predicted_us are set.
  GemmPlan gemm;
  size_t workspace_bytes;  ///< required by this plan for this problem
  const char *name;        ///< static storage, e.g. "conv_wmma_128x128x32_s3_k4"
};

// Selection is pure.  `aligned`: image and other are 16-byte aligned.

/// Maximum number of plans for a problem.
constexpr int kMaxConvPlans = 3 * kMaxGemmPlans;

/// Ranks the plans for `problem` on `device`, fastest first; there is at least one.  Writes at most
/// `capacity` plans and returns the number of plans.
int rank_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
              bool aligned, ConvPlan *choices, int capacity);

/// Returns the fastest plan that fits into the workspace (first_that_fits).
ConvPlan best_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
                   bool aligned, size_t workspace_bytes);

/// Finds the plan named `name`, or the reason why it does not support the problem (see find_gemm).
bool find_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
               bool aligned, const char *name, ConvPlan *choice, const char **why);
std::span<const char *const> conv_names(mp_conv_op_t op);  ///< names that find_conv() accepts

}  // namespace mp
