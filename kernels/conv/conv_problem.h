// Convolution calls, and convolutions as matrix products.  Pure, for selection and launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/workspace_layout.h"
#include "kernels/gemm/problem.h"
#include "kernels/simt/compiler.h"
#include "mpcore/conv.h"

namespace mp {

struct Im2colSpec;
struct TensorMapSpec;

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
  /// Channels of the written filter if `image` is a copy (conv_plan.h); else 0.
  int32_t unpadded_c = 0;
  /// Elements from one pixel and row of `image` to the next if its pixels are windows
  /// (conv_plan.h); else 0.
  int64_t pixel_stride = 0, row_stride = 0;
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

// ---------------------------------------------------------------------------- matrix products

inline int32_t group_c(const ConvShape &s) {
  return s.c / s.groups;
}
inline int32_t group_k(const ConvShape &s) {
  return s.k / s.groups;
}

/// Contiguous segments in the direction of taps and channels (conv_args.h).
struct SegmentShape {
  int32_t taps_h, taps_w, elems;
  int32_t padded() const { return align_up(elems, 8); }
};

/// Returns segments of one tap's channels, or of a row of taps if that needs less padding.
inline SegmentShape segment_shape(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  if (p.op == MP_CONV_DGRAD) return {s.r, s.s, group_k(s)};
  const SegmentShape taps{s.r, s.s, group_c(s)}, rows{s.r, 1, s.s * s.c};
  const bool has_rows = s.groups == 1 && s.dilation_w == 1;
  return has_rows && rows.padded() < s.s * taps.padded() ? rows : taps;
}

/// Returns the distance between rows of taps in the filter, in elements.
inline int32_t filter_row(const ConvProblem &p) {
  const SegmentShape row{1, 1, p.shape.s * group_c(p.shape)};
  return p.unpadded_c != 0 ? row.padded() : row.elems;
}

/// Operands whose segments all begin 16-byte aligned if the tensor does (conv_wmma.cu).
struct VectorOperands {
  bool image, other;
};
VectorOperands vector_operands(const ConvProblem &);

/// Height or width of a convolution.
struct ConvAxis {
  int32_t in, out;  ///< pixels of x and y
  int32_t taps, pad, stride, dilation;
};
inline ConvAxis axis_h(const ConvShape &s) {
  return {s.h, s.p, s.r, s.pad_top, s.stride_h, s.dilation_h};
}
inline ConvAxis axis_w(const ConvShape &s) {
  return {s.w, s.q, s.s, s.pad_left, s.stride_w, s.dilation_w};
}

/// Stride phases of dgrad along an axis.  Phase `residue` has the pixels residue, residue + stride,
/// residue + 2 stride, ... of dx; every tap_step-th tap reaches them.
struct StridePhases {
  int32_t extent;  ///< pixels of dx
  int32_t stride;
  int32_t count;  ///< phases with pixels
  int32_t pad, dilation;
  int32_t taps, tap_step;        ///< taps of the filter; distance between taps of a phase
  int32_t dy_step;               ///< pixels of dy between taps of a phase, backwards
  int32_t max_pixels, max_taps;  ///< per phase
  int32_t reached;               ///< phases with taps; at most, if the extent is below the stride
};
StridePhases stride_phases(const ConvAxis &);

/// Taps that reach the pixels of a stride phase.
struct PhaseTaps {
  int32_t count, first;
  int32_t offset;  ///< pixel of dy that the first pixel reads with the first tap

  MP_HD PhaseTaps(const StridePhases &phases, int32_t residue) : count(0), first(0), offset(0) {
    for (int32_t tap = 0; tap < phases.tap_step; tap++) {
      const int32_t reach = residue + phases.pad - tap * phases.dilation;
      if (reach % phases.stride != 0) continue;
      count = (phases.taps - tap + phases.tap_step - 1) / phases.tap_step;
      first = tap;
      offset = reach / phases.stride;
      return;
    }
  }
};

/// Largest product of a group (dgrad: of a group and stride phase), and the number of products.
struct ProductShape {
  int64_t m, n, k;
  int64_t count;
};
ProductShape product_shape(const ConvProblem &);

/// Maximum number of taps of a depthwise filter: the weights of a block's channels must fit into
/// shared memory.
constexpr int kMaxDepthwiseTaps = 128;

/// True if dx consists of stride phases.
inline bool is_strided_dgrad(const ConvProblem &p) {
  return p.op == MP_CONV_DGRAD && (p.shape.stride_h != 1 || p.shape.stride_w != 1);
}

/// Returns a GEMM with the types, transposes and output of the problem, without k and operands.
GemmProblem operands_of(const ConvProblem &);

/// True for a 1 x 1 filter with stride 1, no padding and one group: x, y and the filter are plain
/// matrices.
bool is_pointwise(const ConvShape &);
GemmProblem pointwise_gemm(const ConvProblem &);

// ---------------------------------------------------------------------------- im2col
//
// TMA reads the pixels of one tap at a time, 64 channels of each.  In the direction of taps and
// channels the product therefore consists of whole blocks of 64 per tap.  Past the last channel of
// a tap both operands are zero, or the output lacks the column.

constexpr int32_t kTapBlock = 64;
constexpr int32_t kMaxIm2colStride = 8;

/// Stride phases with tensor maps of dx.  The maps are arguments of the kernel, at most 4 KiB.
constexpr int32_t kMaxStoredPhases = 16;

/// NULL if im2col TMA can read the image, else the reason.
const char *why_no_im2col(const ConvProblem &);

/// Returns the product as a GEMM without operands.  A strided dgrad is a batch of its stride
/// phases, each as large as the largest.
GemmProblem im2col_gemm(const ConvProblem &);

/// Returns the im2col map of the image: x, or dy in dgrad.  The filter has one origin per pixel of
/// y, or of a stride phase of dx; all phases share these origins and begin at different taps.
Im2colSpec im2col_spec(const ConvProblem &, int32_t pixels);

/// A filter: a matrix per tap, whose rows are output channels.
TensorMapSpec filter_spec(const ConvShape &, const void *filter, mp_dtype_t, int box_rows);
/// Strided dgrad: the pixels of dx in one phase, a subtile at a time.
Im2colSpec phase_spec(const Output &, const ConvShape &, int32_t residue_h, int32_t residue_w);
/// Strided dgrad: C or aux, a subtile of one phase at a time.
Im2colSpec phase_source_spec(const Output &, const ConvShape &);

}  // namespace mp
