// Contents of tensor maps in the simulator, and boxes of bulk tensor copies: each is a box of a
// tensor in gmem and a contiguous range of smem.
//
// Rows of the box are consecutive in smem.  With the 128-byte swizzle, 16-byte chunk c of row r is
// stored at chunk c ^ (r % 8) of its row: address bits 4 to 6 are XORed with bits 7 to 9, since the
// box begins at a multiple of 1024 bytes.  (PTX ISA, Tensors, swizzling modes.)
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/simt/sm90_tma.h"
#include "kernels/simt/tensor_map.h"

namespace mp::host::engine {

// ---------------------------------------------------------------------------- tensor maps

struct TensorMapFields {
  std::byte *base;
  int64_t extent[4];        ///< extent[3] and stride_bytes[2]: im2col maps only
  int64_t stride_bytes[3];  ///< for dimensions 1, 2, 3
  int32_t box[2];           ///< columns and rows; channels and pixels
  int32_t element_bytes;
  bool swizzle_128;
  int8_t lower[2], upper[2], step[2];  ///< Im2colSpec; im2col maps only
  uint8_t unused[45];

  int row_bytes() const { return box[0] * element_bytes; }
  int box_bytes() const { return box[1] * row_bytes(); }
};
static_assert(sizeof(TensorMapFields) == sizeof(TensorMap));

inline TensorMapFields fields_of(const TensorMap &map) {
  return std::bit_cast<TensorMapFields>(map);
}

// ---------------------------------------------------------------------------- boxes

struct TensorBox {
  TensorMapFields map;
  int x, y, z;  ///< coordinates of the first element; may be outside the tensor
};

/// Box of an im2col load or store: one row of smem per pixel that it traverses (Im2colSpec).
struct Im2colBox {
  TensorMapFields map;
  Im2colCoord place;
};

/// Loads zeros for elements outside the tensor.
void load_box(const TensorBox &, std::byte *smem);
void load_box(const Im2colBox &, std::byte *smem);

/// Skips elements outside the tensor.
void store_box(const TensorBox &, const std::byte *smem);
void store_box(const Im2colBox &, const std::byte *smem);

}  // namespace mp::host::engine
