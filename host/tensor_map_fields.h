// Contents of a TensorMap in the simulator.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/simt/tensor_map.h"

namespace mp::host::engine {

struct TensorMapFields {
  static constexpr uint64_t kMagic = 0x50414d524f534e54;  // identifies an encoded map

  uint64_t magic;
  std::byte *base;
  int64_t extent[4];        ///< extent[3] and stride_bytes[2]: im2col maps only
  int64_t stride_bytes[3];  ///< for dimensions 1, 2, 3
  int32_t box[2];           ///< columns and rows; channels and pixels
  int32_t element_bytes;
  bool swizzle_128;
  bool made_by_kernel;        ///< built by tensor_map_copy_with_base or _with_matrix
  bool released;              ///< tensor_map_release called; tensor_map_acquire may follow
  bool im2col;                ///< true for an im2col map; only these have the fields below
  int8_t lower[2], upper[2];  ///< Im2colSpec
  int8_t step[2];             ///< Im2colSpec
  uint8_t unused[34];

  int row_bytes() const { return box[0] * element_bytes; }
  int box_bytes() const { return box[1] * row_bytes(); }
};
static_assert(sizeof(TensorMapFields) == sizeof(TensorMap));

inline TensorMapFields fields_of(const TensorMap &map) {
  return std::bit_cast<TensorMapFields>(map);
}

}  // namespace mp::host::engine
