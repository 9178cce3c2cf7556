// Copies of an image of few channels, and the problem that reads them.
#include <algorithm>
#include <numeric>

#include "base/workspace_layout.h"
#include "kernels/conv/conv_plan.h"

namespace mp {

namespace {

constexpr int32_t kVector = 8, kMinChannels = 4;
constexpr int64_t kEndOfElems = int64_t{1} << 30;  // per image: indices have 32 bits
constexpr int64_t kEndOfLines = int64_t{1} << 31;

size_t copy_bytes(int64_t elems) {
  return static_cast<size_t>(align_up(elems * 2, 256));
}

/// Pixels from the first to the last tap of a row of patches.
int64_t reach_of_patches(const ConvShape &s) {
  return (int64_t{s.q} - 1) * s.stride_w + (int64_t{s.s} - 1) * s.dilation_w + 1;
}

/// Returns the channels per pixel of the copy.  A segment that is a row of taps begins at a
/// multiple of the stride; a segment of one tap can begin at any pixel.
int32_t padded_channels(const ConvShape &s) {
  const int32_t multiple =
      s.dilation_w == 1 ? std::max(kVector / std::gcd(kVector, s.stride_w), kMinChannels) : kVector;
  return static_cast<int32_t>(align_up(s.c, multiple));
}

/// Returns the copy with sizes, or none if the kernels cannot count its elements.
PaddedImage sized(const ConvProblem &p, PaddedImage copy, int64_t lines, int64_t width) {
  const ConvShape &s = p.shape;
  if (lines >= kEndOfLines || width >= kEndOfElems || lines * width >= kEndOfElems / copy.channels)
    return {};
  if (s.n * lines >= kEndOfLines || int64_t{s.k} * s.r >= kEndOfLines) return {};
  if (copy.has_windows()) copy.lines = static_cast<int32_t>(lines);
  copy.width = static_cast<int32_t>(width);
  copy.image_bytes = copy_bytes(s.n * lines * width * copy.channels);
  if (p.op == MP_CONV_FPROP || copy.has_windows()) {
    const ConvProblem padded = with_padded_image(p, copy);
    const int64_t elems = int64_t{s.k} * padded.shape.r * filter_row(padded);
    copy.filter_bytes = copy_bytes(p.op == MP_CONV_FPROP ? elems : 2 * elems);
  }
  return copy;
}

// ---------------------------------------------------------------------------- windows

/// Returns the copy whose pixels have `rows` image rows, a divisor of r.  A last group with fewer
/// rows would multiply image rows below the filter by zeros.
PaddedImage windows_of(const ConvProblem &p, int32_t rows) {
  const ConvShape &s = p.shape;
  const int64_t groups = s.r / rows, group_step = int64_t{rows} * s.dilation_h;
  const int64_t line_step = groups == 1 ? s.stride_h : std::gcd(int64_t{s.stride_h}, group_step);
  PaddedImage copy{};
  copy.channels = static_cast<int32_t>(align_up(rows * s.c, kVector));
  copy.line_step = static_cast<int32_t>(line_step);
  copy.rows = rows;
  const int64_t reach = (int64_t{s.p} - 1) * s.stride_h + (groups - 1) * group_step;
  if (reach + group_step >= kEndOfElems) return {};  // image rows have 32 bits
  if (int64_t{s.h} * s.w >= kEndOfElems / s.c) return {};
  if (double(s.k) * s.r * s.s * copy.channels >= double(kEndOfLines)) return {};
  // Lines are at least as long as the strides of their windows: cuTensorMapEncodeIm2col.
  const int64_t width = std::max<int64_t>(reach_of_patches(s), int64_t{s.q} * s.stride_w);
  return sized(p, copy, reach / line_step + 1, width);
}

/// Traffic in elements: the copy, which is written and read (its bytes, at two per element), and
/// all windows as the kernel reads them.
double window_traffic(const ConvProblem &p, const PaddedImage &copy) {
  const ConvShape &s = p.shape;
  const double windows = double(s.n) * s.p * s.q * (s.r / copy.rows);
  return static_cast<double>(copy.image_bytes) +
         windows * align_up(int64_t{s.s} * copy.channels, kTapBlock);
}

}  // namespace

PaddedImage padded_image(const ConvProblem &p) {
  const ConvShape &s = p.shape;
  if (p.op == MP_CONV_DGRAD || p.dtype == MP_FP32 || s.groups != 1 || vector_operands(p).image)
    return {};
  PaddedImage copy{};
  copy.channels = padded_channels(s);
  return sized(p, copy, s.h,
               align_up(reach_of_patches(s), kVector / std::gcd(kVector, copy.channels)));
}

PaddedImage window_image(const ConvProblem &p) {
  constexpr int32_t kMaxRows = 16;
  const ConvShape &s = p.shape;
  if (p.op == MP_CONV_DGRAD || p.dtype == MP_FP32 || s.groups != 1 || s.c > kMaxWindowChannels ||
      s.dilation_w != 1)
    return {};
  PaddedImage best{};
  for (int32_t rows = 1; rows <= std::min(s.r, kMaxRows); rows++) {
    if (s.r % rows != 0) continue;
    const PaddedImage copy = windows_of(p, rows);
    if (copy.bytes() == 0 || why_no_im2col(with_padded_image(p, copy)) != nullptr) continue;
    if (best.bytes() == 0 || window_traffic(p, copy) < window_traffic(p, best)) best = copy;
  }
  return best;
}

ConvProblem with_padded_image(const ConvProblem &p, const PaddedImage &copy) {
  ConvProblem padded = p;
  ConvShape &s = padded.shape;
  s.c = copy.channels;
  s.w = copy.width;
  s.pad_left = 0;
  padded.unpadded_c = p.shape.c;
  padded.image = nullptr;
  if (p.op == MP_CONV_FPROP) padded.other = nullptr;
  if (!copy.has_windows()) return padded;
  padded.pixel_stride = int64_t{s.stride_w} * copy.channels;
  padded.row_stride = int64_t{copy.width} * copy.channels;
  s.c = s.s * copy.channels;
  s.h = copy.lines;
  s.w = s.q;
  s.r /= copy.rows;
  s.s = 1;
  s.pad_top = 0;
  s.stride_h /= copy.line_step;
  s.stride_w = 1;
  // The distance of groups, which a single group does not have.
  const int64_t group_step = int64_t{copy.rows} * s.dilation_h / copy.line_step;
  s.dilation_h = s.r == 1 ? 1 : static_cast<int32_t>(group_step);
  if (p.op == MP_CONV_WGRAD) {
    padded.out = output_matrix(s, p.op);
    padded.out.dtype = MP_FP32;
    padded.out.alpha = 1.0f;
  }
  return padded;
}

}  // namespace mp
