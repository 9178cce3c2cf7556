// TMA in the simulator: contents of tensor maps, and copies of boxes, which are executed at once.
//
// Rows of a box are consecutive in smem.  With the 128-byte swizzle, 16-byte chunk c of row r is
// stored at chunk c ^ (r % 8) of its row: address bits 4 to 6 are XORed with bits 7 to 9, since the
// box begins at a multiple of 1024 bytes.  (PTX ISA, Tensors, swizzling modes.)
#include "kernels/simt/sm90_tma.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mp::host {

using namespace engine;

namespace {

// ---------------------------------------------------------------------------- tensor maps

/// Fields of an Im2colSpec.  A tiled map is an im2col map of one image: x, y and z are its channel,
/// column and row.
struct TensorMapFields {
  std::byte *base;
  int64_t extent[4], stride_bytes[3];  ///< strides of dimensions 1, 2, 3
  int32_t lower[2], upper[2], step[2];
  int32_t box[2];  ///< columns and rows; channels and pixels
  int32_t element_bytes;
  bool swizzle_128;
  uint8_t unused[27];

  size_t row_bytes() const { return static_cast<size_t>(box[0] * element_bytes); }
  size_t box_bytes() const { return static_cast<size_t>(box[1]) * row_bytes(); }
};
static_assert(sizeof(TensorMapFields) == sizeof(TensorMap));

TensorMapFields fields_of(const TensorMap &map) {
  return std::bit_cast<TensorMapFields>(map);
}

TensorMap encode_im2col(const Im2colSpec &spec) {
  TensorMapFields fields{};
  fields.base = static_cast<std::byte *>(const_cast<void *>(spec.base));
  std::ranges::copy(spec.extent, fields.extent);
  for (int i = 0; i < 3; i++) fields.stride_bytes[i] = tensor_map_stride_bytes(spec, i + 1);
  std::ranges::copy(spec.lower, fields.lower);
  std::ranges::copy(spec.upper, fields.upper);
  std::ranges::copy(spec.step, fields.step);
  fields.box[0] = spec.channels;
  fields.box[1] = spec.pixels;
  fields.element_bytes = float_type(spec.dtype).bytes;
  fields.swizzle_128 = spec.swizzle_128;
  return std::bit_cast<TensorMap>(fields);
}

TensorMap encode(const TensorMapSpec &spec) {
  return encode_im2col({.base = spec.base,
                        .dtype = spec.dtype,
                        .extent = {spec.extent[0], spec.extent[1], spec.extent[2], 1},
                        .stride = {spec.stride[0], spec.stride[1], 0},
                        // After the last y, a box continues here, outside the tensor.
                        .lower = {INT32_MIN, 0},
                        .upper = {0, 0},
                        .step = {1, 1},
                        .channels = spec.box[0],
                        .pixels = spec.box[1],
                        .swizzle_128 = spec.swizzle_128});
}

}  // namespace

const TensorMap &tensor_map(const TensorMapSpec &spec) {
  return cached_tensor_map(encode, spec);
}
const TensorMap &im2col_map(const Im2colSpec &spec) {
  return cached_tensor_map(encode_im2col, spec);
}

// ---------------------------------------------------------------------------- boxes

namespace {

constexpr int kChunkBytes = 16;
constexpr int kSwizzleRows = 8;
constexpr int kSwizzledRowBytes = kSwizzleRows * kChunkBytes;
constexpr int kMaxRowBytes = 256 * 4;

/// Box of a load or store: one row of smem per pixel that it traverses (Im2colSpec).
struct Box {
  TensorMapFields map;
  Im2colCoord at;  ///< first column of the box and first pixel; may be outside the tensor
};

Box tiled_box(const TensorMap &map, int x, int y, int z) {
  return {fields_of(map), {x, y, z, 0, 0, 0}};
}

/// Range of bytes of a row, the same in all rows of a box, whose columns are in the tensor.
struct RowBytes {
  RowBytes(const TensorMapFields &map, int64_t column)
      : first(clip(map, -column)), end(clip(map, map.extent[0] - column)) {}
  static size_t clip(const TensorMapFields &map, int64_t columns) {
    return static_cast<size_t>(std::clamp<int64_t>(columns, 0, map.box[0]) * map.element_bytes);
  }
  size_t size() const { return end - first; }

  size_t first, end;  ///< first == end: none
};

/// Calls f(row, gmem, bytes) for the rows of a box, of which `bytes` are in the tensor.  `gmem`:
/// address of the box's first column, even if that is outside; NULL if all of the row is.
template <class F>
void for_each_row(const Box &box, const F &f) {
  const TensorMapFields &map = box.map;
  const RowBytes bytes(map, box.at.c);
  int64_t first_w = box.at.w, first_h = box.at.h, n = box.at.n;  // of the filter's first tap
  for (int row = 0; row < map.box[1]; row++) {
    const int64_t w = first_w + box.at.w_offset, h = first_h + box.at.h_offset;
    const bool is_inside = bytes.first < bytes.end && w >= 0 && w < map.extent[1] && h >= 0 &&
                           h < map.extent[2] && n >= 0 && n < map.extent[3];
    std::byte *gmem = nullptr;
    if (is_inside)
      gmem = map.base + n * map.stride_bytes[2] + h * map.stride_bytes[1] +
             w * map.stride_bytes[0] + int64_t{box.at.c} * map.element_bytes;
    f(row, gmem, bytes);
    first_w += map.step[0];
    if (first_w <= map.extent[1] - 1 + map.upper[0]) continue;
    first_w = map.lower[0];
    first_h += map.step[1];
    if (first_h <= map.extent[2] - 1 + map.upper[1]) continue;
    first_h = map.lower[1];
    n++;
  }
}

/// Copies a row between gmem and smem.  The swizzle is its own inverse.
void copy_row(const TensorMapFields &map, std::byte *to, const std::byte *from, int row) {
  if (!map.swizzle_128) {
    std::memcpy(to, from, map.row_bytes());
    return;
  }
  const int flip = row % kSwizzleRows * kChunkBytes;
#pragma GCC unroll 8
  for (int at = 0; at < kSwizzledRowBytes; at += kChunkBytes)
    std::memcpy(to + (at ^ flip), from + at, kChunkBytes);
}

/// Loads zeros for elements outside the tensor.
void load(SmemAddress dst, const Box &box, SmemAddress bar, const char *primitive,
          source_location where) {
  const TensorMapFields &map = box.map;
  const size_t row_bytes = map.row_bytes();
  std::byte *const smem = smem_at(dst, map.box_bytes(), primitive, where);
  alignas(kChunkBytes) std::byte whole[kMaxRowBytes] = {};
  for_each_row(box, [&](int row, const std::byte *from, const RowBytes &bytes) {
    std::byte *const to = smem + static_cast<size_t>(row) * row_bytes;
    if (from == nullptr) {
      std::memset(to, 0, row_bytes);
    } else if (bytes.size() == row_bytes) {
      copy_row(map, to, from, row);
    } else {
      std::memcpy(whole + bytes.first, from + bytes.first, bytes.size());
      copy_row(map, to, whole, row);
    }
  });
  mbarrier_complete_tx(bar, static_cast<uint32_t>(map.box_bytes()), where);
}

void load_multicast(SmemAddress dst, const Box &box, SmemAddress bar, uint32_t block_mask,
                    const char *primitive, source_location where) {
  for (int rank = 0; block_mask >> rank != 0; rank++)
    if (block_mask >> rank & 1)
      load(in_block(dst, rank), box, in_block(bar, rank), primitive, where);
}

/// Skips elements outside the tensor.
void store(const Box &box, SmemAddress src, const char *primitive, source_location where) {
  const TensorMapFields &map = box.map;
  const std::byte *const smem = smem_at(src, map.box_bytes(), primitive, where);
  alignas(kChunkBytes) std::byte whole[kMaxRowBytes];
  for_each_row(box, [&](int row, std::byte *to, const RowBytes &bytes) {
    if (to == nullptr) return;
    const bool is_whole = bytes.size() == map.row_bytes();
    copy_row(map, is_whole ? to : whole, smem + static_cast<size_t>(row) * map.row_bytes(), row);
    if (!is_whole) std::memcpy(to + bytes.first, whole + bytes.first, bytes.size());
  });
}

void put_made_map(TensorMap *gmem_dst, TensorMapFields fields, const void *base) {
  fields.base = static_cast<std::byte *>(const_cast<void *>(base));
  *gmem_dst = std::bit_cast<TensorMap>(fields);
}

}  // namespace

// ---------------------------------------------------------------------------- primitives

void tma_load(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x, int y, int z,
              source_location where) {
  load(dst, tiled_box(map, x, y, z), bar, "tma_load", where);
}

void tma_load_multicast(SmemAddress dst, const TensorMap &map, SmemAddress bar, int x, int y, int z,
                        uint32_t block_mask, source_location where) {
  load_multicast(dst, tiled_box(map, x, y, z), bar, block_mask, "tma_load_multicast", where);
}

void tma_load_im2col(SmemAddress dst, const TensorMap &map, SmemAddress bar, const Im2colCoord &at,
                     source_location where) {
  load(dst, Box{fields_of(map), at}, bar, "tma_load_im2col", where);
}

void tma_load_im2col_multicast(SmemAddress dst, const TensorMap &map, SmemAddress bar,
                               const Im2colCoord &at, uint32_t block_mask, source_location where) {
  load_multicast(dst, Box{fields_of(map), at}, bar, block_mask, "tma_load_im2col_multicast", where);
}

void tma_store(const TensorMap &map, SmemAddress src, int x, int y, int z, source_location where) {
  store(tiled_box(map, x, y, z), src, "tma_store", where);
}

void tma_store_im2col(const TensorMap &map, SmemAddress src, int c, int w, int h, int n,
                      source_location where) {
  store(Box{fields_of(map), {c, w, h, n, 0, 0}}, src, "tma_store_im2col", where);
}

void tensor_map_copy_with_base(TensorMap *gmem_dst, const TensorMap &from, const void *base) {
  put_made_map(gmem_dst, fields_of(from), base);
}

void tensor_map_copy_with_matrix(TensorMap *gmem_dst, const TensorMap &from,
                                 const TensorMapMatrix &matrix) {
  TensorMapFields fields = fields_of(from);
  fields.extent[0] = matrix.cols;
  fields.extent[1] = matrix.rows;
  fields.extent[2] = 1;
  fields.stride_bytes[0] = fields.stride_bytes[1] = matrix.row_bytes;
  put_made_map(gmem_dst, fields, matrix.base);
}

}  // namespace mp::host
