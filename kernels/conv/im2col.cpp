// Convolutions whose patches TMA reads in im2col mode, as products of matrices.  Pure.
#include <algorithm>

#include "kernels/conv/conv_plan.h"
#include "kernels/gemm/select.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

namespace {

/// Filter origins along an axis, and the distance from the first tap to the last.
struct FilterReach {
  int32_t extent;                  ///< pixels of the image
  int32_t origins, first, stride;  ///< number of origins, the first, and their distance
  int32_t reach;

  int32_t upper() const { return first + (origins - 1) * stride - (extent - 1); }
};

FilterReach filter_reach(mp_conv_op_t op, const ConvAxis &axis) {
  if (op != MP_CONV_DGRAD)
    return {axis.in, axis.out, -axis.pad, axis.stride, (axis.taps - 1) * axis.dilation};
  // dx[stride i + residue] reads dy[i + offset] with the first tap of its phase and dy_step pixels
  // earlier with each further tap, so the last tap of some phase has the lowest origin.
  const StridePhases phases = stride_phases(axis);
  int32_t first = INT32_MAX, last = INT32_MIN;
  for (int32_t residue = 0; residue < phases.count; residue++) {
    const PhaseTaps taps(phases, residue);
    if (taps.count == 0) continue;
    first = std::min(first, taps.offset - (taps.count - 1) * phases.dy_step);
    last = std::max(last, taps.offset);
  }
  if (first > last) first = last = 0;  // no tap reaches a pixel of dx
  return {axis.out, phases.max_pixels, first, 1, last - first};
}

}  // namespace

const char *why_no_im2col(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  if (!is_half(p.dtype)) return MP_REQUIRES_HALF_TYPE;
  if (s.groups != 1) return "requires groups = 1";
  if (s.c % 8 != 0 || s.k % 8 != 0) return "requires c and k to be multiples of 8";
  if (std::max(s.stride_h, s.stride_w) > kMaxIm2colStride) return "requires strides of at most 8";
  const FilterReach h = filter_reach(p.op, axis_h(s)), w = filter_reach(p.op, axis_w(s));
  if (std::max(h.reach, w.reach) > kMaxIm2colOffset)
    return "requires taps at most 255 pixels apart";
  return why_no_tensor_layout(im2col_spec(p, kTapBlock));
}

GemmProblem im2col_gemm(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  const bool is_wgrad = p.op == MP_CONV_WGRAD;
  const int32_t channels = p.op == MP_CONV_DGRAD ? s.k : s.c;
  const int64_t blocks = (channels + kTapBlock - 1) / kTapBlock;
  const StridePhases h = stride_phases(axis_h(s)), w = stride_phases(axis_w(s));
  const bool is_dgrad = p.op == MP_CONV_DGRAD;
  const int64_t taps =
      (is_dgrad ? int64_t{h.max_taps} * w.max_taps : int64_t{s.r} * s.s) * blocks * kTapBlock;
  GemmProblem gemm = operands_of(p);
  gemm.k = is_wgrad ? int64_t{s.n} * s.p * s.q : taps;
  if (is_wgrad) gemm.out.n = taps;
  if (is_dgrad) {
    gemm.out.m = int64_t{s.n} * h.max_pixels * w.max_pixels;
    gemm.out.batch_count = int64_t{h.count} * w.count;
  }
  gemm.a = gemm.b = {nullptr, nullptr, kTapBlock, 0};
  return gemm;
}

Im2colSpec im2col_spec(const ConvProblem &p, int32_t pixels) {
  const ConvShape &s = p.shape;
  const FilterReach h = filter_reach(p.op, axis_h(s)), w = filter_reach(p.op, axis_w(s));
  const int64_t channels = p.op == MP_CONV_DGRAD ? s.k : s.c;
  const bool is_dense = p.row_stride == 0;
  const int64_t pixel = is_dense ? channels : p.pixel_stride;
  const int64_t row = is_dense ? channels * w.extent : p.row_stride;
  return {.base = p.image,
          .dtype = p.dtype,
          .extent = {channels, w.extent, h.extent, s.n},
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
  const StridePhases h = stride_phases(axis_h(s)), w = stride_phases(axis_w(s));
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
          .upper = {w.max_pixels - width, h.max_pixels - height},
          .step = {1, 1},
          .channels = kTapBlock,
          .pixels = kSubtileRows,
          .swizzle_128 = true};
}

Im2colSpec phase_source_spec(const Output &out, const ConvShape &s) {
  const Operand matrix = wgmma_source_operand(out);
  const auto upper = [](const ConvAxis &axis) {
    return (stride_phases(axis).max_pixels - 1) * axis.stride - (axis.in - 1);
  };
  return {.base = matrix.base,
          .dtype = out.dtype,
          .extent = {s.c, s.w, s.h, s.n},
          .stride = {matrix.ld, matrix.ld * s.w, matrix.ld * s.w * s.h},
          .lower = {0, 0},
          .upper = {upper(axis_w(s)), upper(axis_h(s))},
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
  const int32_t rows = stride_phases(axis_h(p.shape)).count;
  const int32_t columns = stride_phases(axis_w(p.shape)).count;
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
