// Convolutions whose patches TMA reads in im2col mode, as products of matrices.  Pure.
#include <algorithm>

#include "kernels/conv/conv_plan.h"
#include "kernels/gemm/select.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

namespace {

/// Filter origins and reach in one direction, height or width.
struct Direction {
  int32_t extent;                  ///< pixels of the image
  int32_t origins, first, stride;  ///< filter origins: number, first, step
  int32_t reach;                   ///< distance between the first and last tap

  int32_t upper() const { return first + (origins - 1) * stride - (extent - 1); }
};

/// Returns the direction of dgrad.  dx[stride i + residue] reads dy[i + offset] with the first tap
/// of its phase and dy_step pixels earlier with each further tap, so the last tap of some phase has
/// the lowest origin.
Direction dgrad_reach(const ConvShape &s, bool height) {
  const DgradDirection d = height ? dgrad_h(s) : dgrad_w(s);
  const DgradAxis axis = dgrad_axis(s, height);
  int32_t first = INT32_MAX, last = INT32_MIN;
  for (int32_t residue = 0; residue < d.phases; residue++) {
    const DgradPhase own(axis, residue);
    if (own.taps == 0) continue;
    first = std::min(first, own.offset - (own.taps - 1) * d.dy_step);
    last = std::max(last, own.offset);
  }
  if (first > last) first = last = 0;  // no tap reaches a pixel of dx
  return {height ? s.p : s.q, d.pixels, first, 1, last - first};
}

Direction direction(const ConvProblem &p, bool height) {
  const ConvShape &s = p.shape;
  if (p.op == MP_CONV_DGRAD) return dgrad_reach(s, height);
  const int32_t in = height ? s.h : s.w, out = height ? s.p : s.q;
  const int32_t pad = height ? s.pad_top : s.pad_left;
  const int32_t reach = height ? (s.r - 1) * s.dilation_h : (s.s - 1) * s.dilation_w;
  return {in, out, -pad, height ? s.stride_h : s.stride_w, reach};
}

}  // namespace

const char *why_no_im2col(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  if (!is_half(p.dtype)) return MP_REQUIRES_HALF_TYPE;
  if (s.groups != 1) return "requires groups = 1";
  if (s.c % 8 != 0 || s.k % 8 != 0) return "requires c and k to be multiples of 8";
  if (std::max(s.stride_h, s.stride_w) > kMaxIm2colStride) return "requires strides of at most 8";
  if (std::max(direction(p, true).reach, direction(p, false).reach) > kMaxIm2colOffset)
    return "requires taps at most 255 pixels apart";
  return why_no_tensor_layout(im2col_spec(p, kTapBlock));
}

GemmProblem im2col_gemm(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  const bool is_wgrad = p.op == MP_CONV_WGRAD;
  const int32_t channels = p.op == MP_CONV_DGRAD ? s.k : s.c;
  const int64_t blocks = (channels + kTapBlock - 1) / kTapBlock;
  const DgradDirection h = dgrad_h(s), w = dgrad_w(s);
  const bool is_dgrad = p.op == MP_CONV_DGRAD;
  const int64_t taps =
      (is_dgrad ? int64_t{h.taps} * w.taps : int64_t{s.r} * s.s) * blocks * kTapBlock;
  GemmProblem gemm = operands_of(p);
  gemm.k = is_wgrad ? int64_t{s.n} * s.p * s.q : taps;
  if (is_wgrad) gemm.out.n = taps;
  if (is_dgrad) {
    gemm.out.m = int64_t{s.n} * h.pixels * w.pixels;
    gemm.out.batch_count = int64_t{h.phases} * w.phases;
  }
  gemm.a = gemm.b = {nullptr, nullptr, kTapBlock, 0};
  return gemm;
}

Im2colSpec im2col_spec(const ConvProblem &p, int32_t pixels) {
  const Direction w = direction(p, false), h = direction(p, true);
  const int64_t channels = p.op == MP_CONV_DGRAD ? p.shape.k : p.shape.c;
  const bool is_dense = p.row_stride == 0;
  const int64_t pixel = is_dense ? channels : p.pixel_stride;
  const int64_t row = is_dense ? channels * w.extent : p.row_stride;
  return {.base = p.image,
          .dtype = p.dtype,
          .extent = {channels, w.extent, h.extent, p.shape.n},
          .stride = {pixel, row, row * h.extent},
          .lower = {w.first, h.first},
          .upper = {w.upper(), h.upper()},
          .step = {w.stride, h.stride},
          .channels = kTapBlock,
          .pixels = pixels,
          .swizzle_128 = true};
}

// ---------------------------------------------------------------------------- output

TensorMapSpec filter_spec(const ConvShape &s, const void *filter, mp_dtype_t dtype, int box_rows) {
  const int64_t taps = int64_t{s.r} * s.s;
  return wgmma_matrix_spec({filter, nullptr, taps * s.c, s.c}, dtype, s.k, s.c, taps, box_rows);
}

Im2colSpec phase_spec(const Output &out, const ConvShape &s, int32_t residue_h, int32_t residue_w) {
  const auto *const dx = static_cast<const std::byte *>(out.d.base);
  const int64_t row = int64_t{s.w} * s.c;
  const int64_t first = (residue_h * row + int64_t{residue_w} * s.c) * float_type(out.dtype).bytes;
  const int32_t width = (s.w - residue_w - 1) / s.stride_w + 1;
  const int32_t height = (s.h - residue_h - 1) / s.stride_h + 1;
  return {.base = dx != nullptr ? dx + first : nullptr,
          .dtype = out.dtype,
          .extent = {s.c, width, height, s.n},
          .stride = {int64_t{s.stride_w} * s.c, s.stride_h * row, s.h * row},
          .lower = {0, 0},
          // The grid of the largest phase.
          .upper = {dgrad_w(s).pixels - width, dgrad_h(s).pixels - height},
          .step = {1, 1},
          .channels = kTapBlock,
          .pixels = kSubtileRows,
          .swizzle_128 = true};
}

Im2colSpec phase_source_spec(const Output &out, const ConvShape &s) {
  const Operand matrix = wgmma_source_operand(out);
  const auto upper = [](const DgradDirection &d, int32_t extent, int32_t stride) {
    return (d.pixels - 1) * stride - (extent - 1);
  };
  return {.base = matrix.base,
          .dtype = out.dtype,
          .extent = {s.c, s.w, s.h, s.n},
          .stride = {matrix.ld, matrix.ld * s.w, matrix.ld * s.w * s.h},
          .lower = {0, 0},
          .upper = {upper(dgrad_w(s), s.w, s.stride_w), upper(dgrad_h(s), s.h, s.stride_h)},
          .step = {s.stride_w, s.stride_h},
          .channels = kTapBlock,
          .pixels = kSubtileRows,
          .swizzle_128 = true};
}

namespace {

/// Strided dgrad: 16-bit dx is stored by stride phases, with at most one matrix read beside it.
StorePath strided_dgrad_store(const ConvProblem &p) {
  const OutputShape out = shape_of(p.out);
  const EpilogueSource source = epilogue_source(out);
  if (out.dtype == MP_FP32 || out.d.alignment < 16) return StorePath::staged;
  if (source == EpilogueSource::c || source == EpilogueSource::aux_read) {
    const MatrixLayout &beside = source == EpilogueSource::c ? out.c : out.epilogue.aux;
    if (beside.alignment < 16 || why_no_tensor_layout(phase_source_spec(p.out, p.shape)) != nullptr)
      return StorePath::staged;
  } else if (source != EpilogueSource::none) {
    return StorePath::staged;
  }
  const int32_t rows = dgrad_h(p.shape).phases, columns = dgrad_w(p.shape).phases;
  if (rows * columns > kMaxStoredPhases) return StorePath::staged;
  for (int32_t i = 0; i < rows * columns; i++)
    if (why_no_tensor_layout(phase_spec(p.out, p.shape, i / columns, i % columns)) != nullptr)
      return StorePath::staged;
  return StorePath::tma;
}

}  // namespace

StorePath im2col_store(const ConvProblem &p) {
  if (is_strided_dgrad(p)) return strided_dgrad_store(p);
  const OutputShape out = shape_of(im2col_gemm(p).out);
  // The map of a filter by taps has none of C beside it.
  if (p.op == MP_CONV_WGRAD && out.reads_c) return store_path_with(out, false);
  return wgmma_store_path(out);
}

}  // namespace mp
