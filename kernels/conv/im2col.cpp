// See im2col.h.
#include "kernels/conv/im2col.h"

namespace mp {

namespace {

/// One direction, height or width: where the filter stands, and what it reaches.
struct Direction {
  int32_t extent;  ///< of the image
  int32_t places, first, stride;
  int32_t reach;  ///< from the first tap to the last

  int32_t upper() const { return first + (places - 1) * stride - (extent - 1); }
};

Direction direction(const ConvProblem &p, bool height) {
  const ConvShape &s = p.shape;
  const int32_t in = height ? s.h : s.w, out = height ? s.p : s.q;
  const int32_t pad = height ? s.pad_top : s.pad_left;
  const int32_t reach = height ? (s.r - 1) * s.dilation_h : (s.s - 1) * s.dilation_w;
  // dx[h] takes dy[h + pad - r dilation]: the last tap comes first.
  if (p.op == MP_CONV_DGRAD) return {out, in, pad - reach, 1, reach};
  return {in, out, -pad, height ? s.stride_h : s.stride_w, reach};
}

}  // namespace

const char *why_no_im2col(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  if (p.dtype == MP_FP32) return "multiplies FP16 and BF16 only";
  if (s.groups != 1) return "needs one group";
  if (s.c % 8 != 0 || s.k % 8 != 0) return "needs channels in multiples of 8";
  if (p.op == MP_CONV_DGRAD && (s.stride_h != 1 || s.stride_w != 1)) return "needs stride 1";
  if (std::max(s.stride_h, s.stride_w) > 8) return "needs strides of at most 8";
  if (std::max(direction(p, true).reach, direction(p, false).reach) > kMaxIm2colOffset)
    return "needs a filter that reaches at most 255 pixels";
  // Whether the image is aligned is asked elsewhere.
  alignas(16) static const char aligned = 0;
  Im2colSpec spec = im2col_spec(p, kTapBlock);
  spec.base = &aligned;
  return why_no_tensor_map(spec);
}

GemmProblem im2col_gemm(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  const bool is_wgrad = p.op == MP_CONV_WGRAD;
  const int32_t channels = p.op == MP_CONV_DGRAD ? s.k : s.c;
  const int64_t blocks = (channels + kTapBlock - 1) / kTapBlock;
  const int64_t taps = int64_t{s.r} * s.s * blocks * kTapBlock;
  GemmProblem gemm = operands_of(p);
  gemm.k = is_wgrad ? int64_t{s.n} * s.p * s.q : taps;
  if (is_wgrad) gemm.out.n = taps;
  gemm.a = gemm.b = {nullptr, nullptr, kTapBlock, 0};
  return gemm;
}

Im2colSpec im2col_spec(const ConvProblem &p, int32_t pixels) {
  const Direction w = direction(p, false), h = direction(p, true);
  const int64_t channels = p.op == MP_CONV_DGRAD ? p.shape.k : p.shape.c;
  return {.base = p.image,
          .dtype = p.dtype,
          .extent = {channels, w.extent, h.extent, p.shape.n},
          .stride = {channels, channels * w.extent, channels * w.extent * h.extent},
          .lower = {w.first, h.first},
          .upper = {w.upper(), h.upper()},
          .step = {w.stride, h.stride},
          .channels = kTapBlock,
          .pixels = pixels,
          .swizzle_128 = true};
}

}  // namespace mp
