// What a convolution is as a product of matrices.  Pure: selection and launch ask alike.
#pragma once

#include "kernels/conv/problem.h"
#include "kernels/simt/compiler.h"

namespace mp {

inline int32_t group_c(const ConvShape &s) {
  return s.c / s.groups;
}
inline int32_t group_k(const ConvShape &s) {
  return s.k / s.groups;
}

/// The runs that the direction of taps and channels is made of (patches.h).
struct RunShape {
  int32_t taps_h, taps_w, elems;
  int32_t padded() const { return (elems + 7) / 8 * 8; }
};

/// Runs of one tap's channels, or of a row of taps where those waste less.
inline RunShape run_shape(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  if (p.op == MP_CONV_DGRAD) return {s.r, s.s, group_k(s)};
  const RunShape taps{s.r, s.s, group_c(s)}, rows{s.r, 1, s.s * s.c};
  const bool has_rows = s.groups == 1 && s.dilation_w == 1;
  return has_rows && rows.padded() < s.s * taps.padded() ? rows : taps;
}

/// Elements from one row of the filter's taps to the next.
inline int32_t filter_row(const ConvProblem &p) {
  const RunShape row{1, 1, p.shape.s * group_c(p.shape)};
  return p.unpadded_c != 0 ? row.padded() : row.elems;
}

/// Of which operands every run begins at a multiple of 16 bytes, if the tensor does: conv_loaders.h.
struct VectorOperands {
  bool image, other;
};
VectorOperands vector_operands(const ConvProblem &);

/// One direction of dgrad: the pixels that have the same remainder by the stride are a class, which
/// every tap_step-th tap reaches.
struct DgradDirection {
  int32_t classes;   ///< that have pixels
  int32_t pixels;    ///< of a class, at most
  int32_t taps;      ///< of a class, at most
  int32_t tap_step;  ///< from one tap of a class to its next ...
  int32_t dy_step;   ///< ... dy's pixel moves back by so many
};

DgradDirection dgrad_direction(int32_t extent, int32_t taps, int32_t stride, int32_t dilation);
inline DgradDirection dgrad_h(const ConvShape &s) {
  return dgrad_direction(s.h, s.r, s.stride_h, s.dilation_h);
}
inline DgradDirection dgrad_w(const ConvShape &s) {
  return dgrad_direction(s.w, s.s, s.stride_w, s.dilation_w);
}

/// One direction of dgrad as launches have it, height or width.
struct DgradAxis {
  int32_t extent;  ///< of dx
  int32_t stride;
  int32_t classes;  ///< the stride, but for those without a pixel
  int32_t pad, dilation;
  int32_t taps, tap_step;  ///< of the filter; from one tap of a class to its next
};

inline DgradAxis dgrad_axis(const ConvShape &s, bool height) {
  const DgradDirection d = height ? dgrad_h(s) : dgrad_w(s);
  return height ? DgradAxis{s.h, s.stride_h, d.classes, s.pad_top, s.dilation_h, s.r, d.tap_step}
                : DgradAxis{s.w, s.stride_w, d.classes, s.pad_left, s.dilation_w, s.s, d.tap_step};
}

/// The pixels `residue`, residue + stride, residue + 2 stride... of one direction.
struct DgradPhase {
  int32_t taps;  ///< that reach them
  int32_t first_tap;
  int32_t offset;  ///< of the first pixel's first tap, in dy

  MP_HD DgradPhase(const DgradAxis &axis, int32_t residue) : taps(0), first_tap(0), offset(0) {
    for (int32_t tap = 0; tap < axis.tap_step; tap++) {
      const int32_t reach = residue + axis.pad - tap * axis.dilation;
      if (reach % axis.stride != 0) continue;
      taps = (axis.taps - tap + axis.tap_step - 1) / axis.tap_step;
      first_tap = tap;
      offset = reach / axis.stride;
      return;
    }
  }
};

/// What one group, and in dgrad one class, multiplies; sizes of the largest.
struct ProductShape {
  int64_t m, n, k;
  int64_t count;
};
ProductShape product_shape(const ConvProblem &);

/// Weights of a block's channels must fit into shared memory.
constexpr int kMaxDepthwiseTaps = 128;

/// The pixels of dx then belong to classes.
inline bool is_strided_dgrad(const ConvProblem &p) {
  return p.op == MP_CONV_DGRAD && (p.shape.stride_h != 1 || p.shape.stride_w != 1);
}

/// A GEMM that lacks extents and matrices.
GemmProblem operands_of(const ConvProblem &);

/// A 1 x 1 filter with stride 1 and no padding: x, y and the filter are matrices as they are.
bool is_pointwise(const ConvShape &);
GemmProblem pointwise_gemm(const ConvProblem &);

}  // namespace mp
