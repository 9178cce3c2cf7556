// Bytes of global memory in a box of a tensor map: PTX ISA, Tensors, Tiled Mode and Im2col Mode.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "softgpu/machine/tensor_map.h"

namespace softgpu {

struct BoxPlace {
  std::array<int32_t, 5> coordinates{};
  std::array<uint16_t, 3> offsets{};  ///< for im2col loads
};

/// Contiguous part of a box row: the first `skipped` bytes are outside the tensor, the next `bytes`
/// are at `address`, the rest is outside.
struct BoxRow {
  uint32_t at;  ///< offset in the box
  uint64_t address;
  uint32_t skipped, bytes;
};

/// Returns the part of a box row that is within the innermost dimension; empty if the row is
/// outside another dimension.
inline BoxRow box_row(const TensorMap &map, uint32_t index, int64_t first, uint64_t address,
                      bool is_inside) {
  const uint32_t element = map.element_bytes();
  const int64_t size = map.row_bytes() / element;
  const int64_t begin = std::clamp<int64_t>(-first, 0, size);
  const int64_t end = std::clamp<int64_t>(static_cast<int64_t>(map.sizes[0]) - first, begin, size);
  return {index * map.row_bytes(), address + static_cast<uint64_t>(first + begin) * element,
          static_cast<uint32_t>(begin) * element,
          is_inside ? static_cast<uint32_t>(end - begin) * element : 0};
}

inline bool is_inside(const TensorMap &map, size_t dimension, int64_t coordinate) {
  return coordinate >= 0 && coordinate < static_cast<int64_t>(map.sizes[dimension]);
}

/// Calls f(BoxRow) for the rows of a tiled box, in shared memory order.
template <class F>
void for_each_tiled_row(const TensorMap &map, const BoxPlace &place, F &&f) {
  std::array<uint32_t, 5> index{};
  for (uint32_t row = 0; row < map.num_rows(); row++) {
    bool inside = true;
    uint64_t address = map.base;
    for (size_t i = 1; i < map.rank; i++) {
      const int64_t c = int64_t{place.coordinates[i]} + index[i];
      inside &= is_inside(map, i, c);
      address += static_cast<uint64_t>(c) * map.strides[i - 1];
    }
    f(box_row(map, row, place.coordinates[0], address, inside));
    for (size_t i = 1; i < map.rank && ++index[i] == map.box[i]; i++) index[i] = 0;
  }
}

/// Calls f(BoxRow) for the rows of an im2col box: its pixels continue in the next image.
template <class F>
void for_each_im2col_row(const TensorMap &map, const BoxPlace &place, F &&f) {
  const size_t num_spatial = map.rank - 2u, image = map.rank - 1u;
  std::array<int64_t, 5> pixel{};
  for (size_t i = 1; i < map.rank; i++) pixel[i] = place.coordinates[i];
  for (uint32_t row = 0; row < map.pixels; row++) {
    bool inside = is_inside(map, image, pixel[image]);
    uint64_t address = map.base + static_cast<uint64_t>(pixel[image]) * map.strides[image - 1];
    for (size_t i = 1; i <= num_spatial; i++) {
      const int64_t c = pixel[i] + place.offsets[i - 1];
      inside &= is_inside(map, i, c);
      address += static_cast<uint64_t>(c) * map.strides[i - 1];
    }
    f(box_row(map, row, place.coordinates[0], address, inside));

    size_t i = 1;
    for (; i <= num_spatial; i++) {
      pixel[i] += map.element_strides[i];
      const int64_t last = static_cast<int64_t>(map.sizes[i]) - 1 + map.upper[i - 1];
      if (pixel[i] <= last) break;
      pixel[i] = map.lower[i - 1];
    }
    if (i > num_spatial) pixel[image]++;
  }
}

template <class F>
void for_each_row(const TensorMap &map, const BoxPlace &place, F &&f) {
  if (map.is_im2col)
    for_each_im2col_row(map, place, f);
  else
    for_each_tiled_row(map, place, f);
}

}  // namespace softgpu
