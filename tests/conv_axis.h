// One axis of a convolution as im2col TMA is told of it.
#pragma once

namespace mptest {

struct Axis {
  int extent, filter, stride, dilation, pad_lo, pad_hi;

  /// Where the filter may stand.
  int places() const {
    return (extent + pad_lo + pad_hi - dilation * (filter - 1) - 1) / stride + 1;
  }
  // The corners of the bounding box: cuTensorMapEncodeIm2col, pixelBoxLowerCorner and -UpperCorner.
  int lower() const { return -pad_lo; }
  int upper() const { return pad_hi - dilation * (filter - 1); }
};

}  // namespace mptest
