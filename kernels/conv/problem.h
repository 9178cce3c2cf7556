// What a convolution is asked, and the choice of its kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/gemm/problem.h"
#include "mpcore/conv.h"

namespace mp {

/// Names as in mpcore/conv.h.  p, q > 0.
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

/// P and Q of a descriptor; 0 where the filter is larger than the padded image.
struct ConvExtents {
  int64_t p, q;
};
ConvExtents conv_extents(const mp_conv2d_desc_t &);

/// One mp_conv2d_* call, after validation.  n, p, q > 0: without them nothing is multiplied, and a
/// GEMM with k = 0 does the rest.
struct ConvProblem {
  mp_conv_op_t op;
  ConvShape shape;
  mp_dtype_t dtype;   ///< of image and other
  const void *image;  ///< what patches are taken from: x; dy in dgrad
  const void *other;  ///< the filter; dy in wgrad
  Output out;         ///< the written tensor as one matrix
  /// Of a copy with padded channels (padded_image.h): what there are without, as the written filter has them; else 0.
  int32_t unpadded_c = 0;

  bool operator==(const ConvProblem &) const = default;
};

/// Returns the written tensor as one matrix.
Output output_matrix(const ConvShape &, mp_conv_op_t);

/// The problem of a descriptor whose fields are valid; neither data nor epilogue.
ConvProblem conv_problem(const mp_conv2d_desc_t &, mp_conv_op_t);

/// How a convolution is run: by a GEMM kernel as it is (1 x 1 filters), by one whose main loop reads
/// patches, by one for which TMA does (im2col), or channel by channel.
enum class ConvFamily { gemm, implicit, im2col, depthwise };

struct ConvPlan {
  ConvFamily family;
  GemmPlan gemm;           ///< its copies: padded_image.h; depthwise: only split_k and predicted_us
  size_t workspace_bytes;  ///< needed by this choice for this problem
  const char *name;        ///< static storage, e.g. "conv_wmma_128x128x32_s3_k4"
};

// Choosing is pure, as for a GEMM.  `aligned`: image and other are 16-byte aligned.

/// No problem has more choices than this.
constexpr int kMaxConvPlans = 3 * kMaxGemmPlans;

/// Ranks what can run `problem` on `device`, fastest first; never empty.
/// At most `capacity` choices are written; returns how many exist.
int rank_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
              bool aligned, ConvPlan *choices, int capacity);

/// first_that_fits of the ranking.
ConvPlan best_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
                   bool aligned, size_t workspace_bytes);

/// The choice of that name, or why it cannot run this problem, as find_gemm.
bool find_conv(const ConvProblem &problem, const Device &device, const GemmTuning &tuning,
               bool aligned, const char *name, ConvPlan *choice, const char **why);
std::span<const char *const> conv_names(mp_conv_op_t op);  ///< all that it knows

}  // namespace mp
