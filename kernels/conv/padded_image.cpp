#include "kernels/conv/padded_image.h"

#include <algorithm>
#include <numeric>

#include "base/workspace_layout.h"
#include "kernels/gemm/select.h"

namespace mp {

namespace {

constexpr int32_t kVector = 8, kMinChannels = 4;

size_t copy_bytes(int64_t elems) {
  return static_cast<size_t>(align_up(elems * 2, 256));
}

/// Returns the channels per pixel of the copy.  A segment that is a row of taps begins at a
/// multiple of the stride; a segment of one tap can begin at any pixel.
int32_t padded_channels(const ConvShape &s) {
  const int32_t multiple =
      s.dilation_w == 1 ? std::max(kVector / std::gcd(kVector, s.stride_w), kMinChannels) : kVector;
  return static_cast<int32_t>(align_up(s.c, multiple));
}

}  // namespace

PaddedImage padded_image(const ConvProblem &p) {
  constexpr int64_t kEndOfElems = int64_t{1} << 30;  // per image: indices have 32 bits
  const ConvShape &s = p.shape;
  if (p.op == MP_CONV_DGRAD || p.dtype == MP_FP32 || s.groups != 1 || vector_operands(p).image)
    return {};
  PaddedImage copy{};
  copy.channels = padded_channels(s);
  const int64_t reach = (int64_t{s.q} - 1) * s.stride_w + (int64_t{s.s} - 1) * s.dilation_w + 1;
  const int64_t width = align_up(reach, kVector / std::gcd(kVector, copy.channels));
  if (s.h * width >= kEndOfElems / copy.channels) return {};
  copy.width = static_cast<int32_t>(width);
  copy.image_bytes = copy_bytes(int64_t{s.n} * s.h * width * copy.channels);
  if (p.op == MP_CONV_FPROP) {
    const ConvProblem padded = with_padded_image(p, copy);
    copy.filter_bytes = copy_bytes(int64_t{s.k} * s.r * filter_row(padded));
  }
  return copy;
}

ConvProblem with_padded_image(const ConvProblem &p, const PaddedImage &copy) {
  ConvProblem padded = p;
  padded.shape.c = copy.channels;
  padded.shape.w = copy.width;
  padded.shape.pad_left = 0;
  padded.unpadded_c = p.shape.c;
  padded.image = nullptr;
  if (p.op == MP_CONV_FPROP) padded.other = nullptr;
  return padded;
}

}  // namespace mp
