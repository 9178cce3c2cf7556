// What one bulk tensor copy moves: a box of a tensor in gmem, to or from a contiguous range of smem.
//
// The rows of the box follow each other in smem.  Under the 128-byte swizzle the 16-byte chunk c of
// row r lies at chunk c ^ (r % 8) of its row: bits 4 to 6 of the address are XORed with bits 7 to 9,
// as the box begins at a multiple of 1024 bytes.  (PTX ISA, Tensors, swizzling modes.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/tensor_map_fields.h"
#include "kernels/simt/sm90_tma.h"

namespace mp::host::engine {

struct TensorBox {
  TensorMapFields map;
  int x, y, z;  ///< coordinates of its first element; any part may lie outside of the tensor
};

/// What an im2col load moves: one row of smem for every pixel on its way (Im2colSpec).
struct Im2colBox {
  TensorMapFields map;
  Im2colCoord place;
};

/// Elements outside of the tensor become zero.
void load_box(const TensorBox &, std::byte *smem);
void load_box(const Im2colBox &, std::byte *smem);

/// Elements outside of the tensor stay as they are.
void store_box(const TensorBox &, const std::byte *smem);

/// Adds to fp32 elements; other OS threads may do so at the same time.
void add_box(const TensorBox &, const std::byte *smem);

}  // namespace mp::host::engine
