// dgrad with a stride on the tensor cores of Hopper: the loop of conv_wgmma.h over classes of pixels.
//
// Pixels of dx that have the same remainders by the strides are a class (implicit_gemm.h).  Each is a
// dgrad with stride 1, of some of the taps: the classes read dy through one map, from offsets of their
// own, and only what they store lies apart.
#pragma once

#include "kernels/conv/conv_wgmma.h"

namespace mp::MP_TARGET {

/// The rows of a class's product are pixels of dx.  The grid of every class is that of the largest, so that
/// some rows of the others are no pixels.
///
/// im2col TMA brings a subtile of what stands beside dx: its pixels are a stride apart.
class StridePhasePlacement : public DensePlacement {
 public:
  static constexpr bool kHasStridedRows = true;
  static constexpr int kBoxRows = kLinePixels;

  MP_DEVICE explicit StridePhasePlacement(const DgradWgmmaArgs &args)
      : DensePlacement(args), args_(args) {}

  MP_DEVICE int64_t row(int item, int64_t row) const {
    const Pixel at = pixel(row);
    const int32_t h = image_row(item, at);
    const int32_t w = at.column * args_.w.stride + args_.phase_w(item).residue;
    if (h >= args_.h.extent || w >= args_.w.extent) return -1;
    return (int64_t{at.image} * args_.h.extent + h) * args_.w.extent + w;
  }

  /// 16 pixels from that row on, by the map of what stands beside dx.
  MP_DEVICE Im2colCoord subtile(int item, int64_t row, int channel) const {
    const Pixel at = pixel(row);
    return {channel,  at.column * args_.w.stride,  at.row * args_.h.stride,
            at.image, args_.phase_w(item).residue, args_.phase_h(item).residue};
  }

  /// A map has the pixels of one class of columns, and all rows of all images.
  MP_DEVICE const TensorMap &map_d(int item) const {
    return args_.d_columns[args_.classes.divide(item).remainder];
  }

  /// Whether kLinePixels from that row on are in one row of the image, and where.  The last may be behind its end.
  MP_DEVICE bool find_image_row(int item, int64_t row, int &column, int &line) const {
    const Pixel at = pixel(row);
    const int32_t h = image_row(item, at);
    column = at.column;
    line = at.image * args_.h.extent + h;
    return h < args_.h.extent && at.column + kLinePixels <= args_.places.of_row.divisor;
  }

 private:
  struct Pixel {
    int32_t image, row, column;  ///< row and column: of its class
  };
  MP_DEVICE Pixel pixel(int64_t row) const {
    const Quotient image = args_.places.of_image.divide(static_cast<int32_t>(row));
    const Quotient line = args_.places.of_row.divide(image.remainder);
    return {image.quotient, line.quotient, line.remainder};
  }
  MP_DEVICE int32_t image_row(int item, const Pixel &at) const {
    return at.row * args_.h.stride + args_.phase_h(item).residue;
  }

  const DgradWgmmaArgs &args_;
};

}  // namespace mp::MP_TARGET
