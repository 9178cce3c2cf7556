// Conversions from a descriptor to a problem, and from a problem to the products of matrices that
// its kernels compute.
#include "kernels/conv/conv_problem.h"

#include <algorithm>
#include <numeric>

#include "base/cache.h"
#include "base/dtypes.h"
#include "base/workspace_layout.h"
#include "kernels/gemm/select.h"
#include "kernels/simt/tensor_map.h"

namespace mp {

namespace {

/// Returns (padded - reach) / stride + 1, or 0 if the filter is larger than the padded image.
int64_t output_extent(int64_t padded, int32_t taps, int32_t dilation, int32_t stride) {
  const int64_t reach = (int64_t{taps} - 1) * dilation + 1;
  return padded < reach ? 0 : (padded - reach) / stride + 1;
}

ConvShape conv_shape(const mp_conv2d_desc_t &d) {
  const ConvExtents y = conv_extents(d);
  return {.n = d.n,
          .h = d.h,
          .w = d.w,
          .c = d.c,
          .k = d.k,
          .r = d.r,
          .s = d.s,
          .p = static_cast<int32_t>(y.p),
          .q = static_cast<int32_t>(y.q),
          .pad_top = d.pad_top,
          .pad_left = d.pad_left,
          .stride_h = d.stride_h,
          .stride_w = d.stride_w,
          .dilation_h = d.dilation_h,
          .dilation_w = d.dilation_w,
          .groups = d.groups};
}

}  // namespace

Output output_matrix(const ConvShape &s, mp_conv_op_t op) {
  Output out{};
  out.m = op == MP_CONV_FPROP   ? int64_t{s.n} * s.p * s.q
          : op == MP_CONV_DGRAD ? int64_t{s.n} * s.h * s.w
                                : s.k;
  out.n = op == MP_CONV_FPROP ? s.k : op == MP_CONV_DGRAD ? s.c : int64_t{s.r} * s.s * group_c(s);
  out.batch_count = 1;
  out.c.ld = out.d.ld = out.n;
  return out;
}

ConvExtents conv_extents(const mp_conv2d_desc_t &d) {
  return {output_extent(padded_h(d), d.r, d.dilation_h, d.stride_h),
          output_extent(padded_w(d), d.s, d.dilation_w, d.stride_w)};
}

ConvProblem conv_problem(const mp_conv2d_desc_t &d, mp_conv_op_t op) {
  const ConvShape shape = conv_shape(d);
  Output out = output_matrix(shape, op);
  out.dtype = d.dtype_out;
  out.alpha = d.alpha;
  out.beta = d.beta;
  return {
      .op = op, .shape = shape, .dtype = d.dtype, .image = nullptr, .other = nullptr, .out = out};
}

ConvKey key_of(const ConvProblem &p) {
  return {.op = p.op,
          .shape = p.shape,
          .dtype = p.dtype,
          .image_is_aligned = alignment_of(p.image) == 16,
          .other_is_aligned = alignment_of(p.other) == 16,
          .out = shape_of(p.out)};
}

uint64_t ConvKey::hash() const {
  Hash hash;
  mix(hash, out);
  const ConvShape &s = shape;
  hash.mix({s.n, s.h, s.w, s.c, s.k, s.r, s.s, s.pad_top, s.pad_left, s.stride_h, s.stride_w,
            s.dilation_h, s.dilation_w, s.groups});
  hash.mix(static_cast<uint64_t>(op) << 2 | static_cast<uint64_t>(dtype));
  return hash.sum;
}

VectorOperands vector_operands(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  const auto is_whole = [](auto... elems) { return (... && (elems % 8 == 0)); };
  const bool groups_of_k = is_whole(s.k, group_k(s)), groups_of_c = is_whole(group_c(s));
  if (p.op == MP_CONV_DGRAD) return {groups_of_k, groups_of_c};
  const int64_t c = s.c;
  const bool by_taps = segment_shape(p).taps_w > 1;
  const bool lines = is_whole(s.w * c, s.stride_w * c, s.pad_left * c) &&
                     (groups_of_c || (s.groups == 1 && !by_taps));
  const bool filter = is_whole(filter_row(p)) && (groups_of_c || !by_taps);
  return {lines, p.op == MP_CONV_WGRAD ? groups_of_k : filter};
}

StridePhases stride_phases(const ConvAxis &axis) {
  const int32_t common = std::gcd(axis.stride, axis.dilation);
  const int32_t tap_step = std::min(axis.stride / common, axis.taps);
  const int32_t count = std::min(axis.stride, axis.in);
  return {.extent = axis.in,
          .stride = axis.stride,
          .count = count,
          .pad = axis.pad,
          .dilation = axis.dilation,
          .taps = axis.taps,
          .tap_step = tap_step,
          .dy_step = axis.dilation / common,
          .max_pixels = (axis.in - 1) / axis.stride + 1,
          .max_taps = (axis.taps - 1) / tap_step + 1,
          .reached = std::min(tap_step, count)};
}

namespace {

/// Returns the product over taps and channels in `segments`.
ProductShape product_over(const ConvProblem &p, const SegmentShape &segments) {
  const ConvShape &s = p.shape;
  const int64_t taps = int64_t{segments.taps_h} * segments.taps_w * segments.padded();
  const int64_t outputs = int64_t{s.n} * s.p * s.q;
  switch (p.op) {
    case MP_CONV_FPROP:
      return {outputs, group_k(s), taps, s.groups};
    case MP_CONV_WGRAD:
      return {group_k(s), taps, outputs, s.groups};
    case MP_CONV_DGRAD:
      break;
  }
  const StridePhases h = stride_phases(axis_h(s)), w = stride_phases(axis_w(s));
  return {int64_t{s.n} * h.max_pixels * w.max_pixels, group_c(s),
          int64_t{h.max_taps} * w.max_taps * segments.padded(),
          int64_t{s.groups} * h.count * w.count};
}

}  // namespace

ProductShape product_shape(const ConvProblem &p) {
  return product_over(p, segment_shape(p));
}

GemmProblem operands_of(const ConvProblem &p) {
  return {.out = p.out,
          .k = 0,
          .op_a = p.op == MP_CONV_WGRAD ? MP_OP_T : MP_OP_N,
          .op_b = p.op == MP_CONV_FPROP ? MP_OP_T : MP_OP_N,
          .dtype_ab = p.dtype,
          .a = {},
          .b = {}};
}

bool is_pointwise(const ConvShape &s) {
  return s.r == 1 && s.s == 1 && s.stride_h == 1 && s.stride_w == 1 && s.p == s.h && s.q == s.w &&
         s.pad_top == 0 && s.pad_left == 0 && s.groups == 1;
}

GemmProblem pointwise_gemm(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  const int64_t pixels = int64_t{s.n} * s.p * s.q;
  const Operand image{p.image, nullptr, p.op == MP_CONV_DGRAD ? s.k : s.c, 0};
  const Operand other{p.other, nullptr, p.op == MP_CONV_WGRAD ? s.k : s.c, 0};
  GemmProblem gemm = operands_of(p);
  gemm.k = p.op == MP_CONV_FPROP ? s.c : p.op == MP_CONV_DGRAD ? s.k : pixels;
  gemm.a = p.op == MP_CONV_WGRAD ? other : image;
  gemm.b = p.op == MP_CONV_WGRAD ? image : other;
  return gemm;
}

// ---------------------------------------------------------------------------- im2col

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
    return "requires offsets of taps in x (dgrad: dy) at most 255 apart";
  return why_no_tensor_layout(im2col_spec(p, kTapBlock));
}

GemmProblem im2col_gemm(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  const int32_t channels = p.op == MP_CONV_DGRAD ? s.k : s.c;
  const ProductShape product = product_over(p, {s.r, s.s, align_up(channels, kTapBlock)});
  GemmProblem gemm = operands_of(p);
  gemm.out.m = product.m;
  gemm.out.n = product.n;
  gemm.out.batch_count = product.count;
  gemm.k = product.k;
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

}  // namespace mp
