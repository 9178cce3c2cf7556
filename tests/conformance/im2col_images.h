// Convolutions with which im2col.cu tests im2col TMA.
#pragma once

#include "kernels/simt/tensor_map.h"

namespace mptest {

/// One axis of a convolution, as im2col TMA describes it.
struct Axis {
  int extent, filter, stride, dilation, pad_lo, pad_hi;

  /// The number of places of the filter.
  int places() const {
    return (extent + pad_lo + pad_hi - dilation * (filter - 1) - 1) / stride + 1;
  }
  // The corners of the bounding box: cuTensorMapEncodeIm2col, pixelBoxLowerCorner and -UpperCorner.
  int lower() const { return -pad_lo; }
  int upper() const { return pad_hi - dilation * (filter - 1); }
};

struct Images {
  mp_dtype_t dtype;
  int channels, images;
  Axis w, h;
  int pixel_stride;  ///< elements
  int box_channels, box_pixels;
  bool swizzle_128;

  /// Elements; the last pixel of a row may overlap with none of the next row.
  int row_stride() const {
    return w.extent * pixel_stride + (channels > pixel_stride ? channels - pixel_stride : 0);
  }
  int image_stride() const { return h.extent * row_stride(); }
  int places() const { return images * h.places() * w.places(); }
  mp::Im2colSpec spec(const void *base) const {
    return {base,
            dtype,
            {channels, w.extent, h.extent, images},
            {pixel_stride, row_stride(), image_stride()},
            {w.lower(), h.lower()},
            {w.upper(), h.upper()},
            {w.stride, h.stride},
            box_channels,
            box_pixels,
            swizzle_128};
  }
};

constexpr Images kImages[] = {
    // 3 x 3, padded; the tile spans rows and images.
    {MP_FP16, 64, 3, {7, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}, 64, 64, 24, true},
    // The whole batch is smaller than the tile; a tail of channels; padding between pixels.
    {MP_BF16, 72, 2, {3, 1, 1, 1, 0, 0}, {2, 1, 1, 1, 0, 0}, 80, 64, 32, true},
    // Strides that leave a rest, unequal padding.
    {MP_FP16, 40, 2, {11, 3, 2, 1, 0, 2}, {10, 4, 3, 1, 2, 1}, 40, 64, 16, true},
    // Dilation, one axis of one tap; filter larger than the image.
    {MP_FP16, 8, 2, {4, 5, 1, 3, 7, 6}, {9, 1, 4, 1, 0, 0}, 8, 8, 20, false},
    {MP_FP32, 36, 1, {6, 2, 8, 2, 9, 5}, {6, 3, 1, 2, 2, 2}, 36, 32, 40, true},
    // One image of one pixel; without the swizzle.
    {MP_FP16, 16, 1, {1, 3, 1, 1, 1, 1}, {1, 3, 1, 1, 1, 1}, 16, 256, 3, false},
    // A line, as 1-D convolutions are; more padding than image.
    {MP_BF16, 136, 2, {5, 3, 2, 4, 20, 17}, {1, 1, 1, 1, 0, 0}, 136, 64, 64, true},
};

/// Pixels that overlap: windows of 3 taps of 16 elements each, a tap apart, and 7 of 8, two apart.
constexpr Images kOverlappingImages[] = {
    {MP_FP16, 48, 3, {7, 1, 1, 1, 0, 0}, {9, 3, 2, 2, 0, 0}, 16, 64, 24, true},
    {MP_BF16, 56, 2, {5, 1, 1, 1, 0, 0}, {6, 2, 1, 1, 0, 0}, 8, 64, 32, true},
    {MP_FP32, 40, 2, {9, 1, 2, 1, 0, 0}, {4, 2, 1, 1, 0, 0}, 8, 32, 40, true},
};

}  // namespace mptest
