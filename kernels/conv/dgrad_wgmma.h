// Strided dgrad on Hopper's tensor cores: the loop of conv_wgmma.h over stride phases.
//
// Each stride phase (implicit_gemm.h) is a dgrad with stride 1 and some of the taps.  All phases
// read dy through one map, at different offsets, and store pixels of dx that are not adjacent.
#pragma once

#include "kernels/conv/conv_wgmma.h"

namespace mp::MP_TARGET {

/// Placement of a stride phase, whose rows are pixels of dx.  All phases have the grid of the
/// largest, so some rows of the others are not pixels.
///
/// im2col TMA loads the subtiles of the epilogue source, whose pixels are a stride apart.
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

  /// Returns the position of 16 pixels from `row` on in the map of the epilogue source.
  MP_DEVICE Im2colCoord subtile(int item, int64_t row, int channel) const {
    const Pixel at = pixel(row);
    return {channel,  at.column * args_.w.stride,  at.row * args_.h.stride,
            at.image, args_.phase_w(item).residue, args_.phase_h(item).residue};
  }

  /// Returns the map of the item's column phase, with all rows of all images.
  MP_DEVICE const TensorMap &map_d(int item) const {
    return args_.d_columns[args_.classes.divide(item).remainder];
  }

  /// Returns whether kLinePixels pixels from `row` on are in one image row, and finds their
  /// position.  The last ones may be past the end of the image row.
  MP_DEVICE bool find_image_row(int item, int64_t row, int &column, int &line) const {
    const Pixel at = pixel(row);
    const int32_t h = image_row(item, at);
    column = at.column;
    line = at.image * args_.h.extent + h;
    return h < args_.h.extent && at.column + kLinePixels <= args_.places.of_row.divisor;
  }

 private:
  struct Pixel {
    int32_t image, row, column;  ///< row and column: in the stride phase
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
