// Boxes of bulk tensor copies: each is a box of a tensor in gmem and a contiguous range of smem.
//
// Rows of the box are consecutive in smem.  With the 128-byte swizzle, 16-byte chunk c of row r is
// stored at chunk c ^ (r % 8) of its row: address bits 4 to 6 are XORed with bits 7 to 9, since the
// box begins at a multiple of 1024 bytes.  (PTX ISA, Tensors, swizzling modes.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/tensor_map_fields.h"
#include "kernels/simt/sm90_tma.h"

namespace mp::host::engine {

struct TensorBox {
  TensorMapFields map;
  int x, y, z;  ///< coordinates of the first element; may be outside the tensor
};

/// Box of an im2col load: one row of smem per pixel that the load traverses (Im2colSpec).
struct Im2colBox {
  TensorMapFields map;
  Im2colCoord place;
};

/// Loads zeros for elements outside the tensor.
void load_box(const TensorBox &, std::byte *smem);
void load_box(const Im2colBox &, std::byte *smem);

/// Skips elements outside the tensor.
void store_box(const TensorBox &, const std::byte *smem);

/// Adds fp32 elements; safe while other OS threads add to the same elements.
void add_box(const TensorBox &, const std::byte *smem);

}  // namespace mp::host::engine
