#include "host/tensor_box.h"

#include <algorithm>
#include <cstring>

namespace mp::host::engine {

namespace {

constexpr int kChunkBytes = 16;
constexpr int kSwizzleRows = 8;
constexpr int kSwizzledRowBytes = kSwizzleRows * kChunkBytes;
constexpr int kMaxRowBytes = 256 * 4;

/// Applies the swizzle, which is its own inverse, to a load or a store.
void copy_swizzled(std::byte *to, const std::byte *from, int row) {
  const int flip = row % kSwizzleRows * kChunkBytes;
#pragma GCC unroll 8
  for (int at = 0; at < kSwizzledRowBytes; at += kChunkBytes)
    std::memcpy(to + (at ^ flip), from + at, kChunkBytes);
}

void copy_row(const TensorMapFields &map, std::byte *to, const std::byte *from, int row) {
  if (map.swizzle_128)
    copy_swizzled(to, from, row);
  else
    std::memcpy(to, from, static_cast<size_t>(map.row_bytes()));
}

/// Part of a box within the tensor.
struct Clip {
  explicit Clip(const TensorBox &box) {
    const TensorMapFields &map = box.map;
    const auto clip = [](int64_t value, int32_t limit) {
      return static_cast<int>(std::clamp<int64_t>(value, 0, limit));
    };
    first_byte = clip(-int64_t{box.x}, map.box[0]) * map.element_bytes;
    end_byte = clip(map.extent[0] - box.x, map.box[0]) * map.element_bytes;
    first_row = clip(-int64_t{box.y}, map.box[1]);
    end_row = clip(map.extent[1] - box.y, map.box[1]);
    const bool in_matrix = box.z >= 0 && box.z < map.extent[2];
    if (!in_matrix || first_byte >= end_byte) first_row = end_row = 0;
    whole_rows = first_byte == 0 && end_byte == map.row_bytes();
  }

  size_t bytes() const { return static_cast<size_t>(end_byte - first_byte); }

  int first_byte, end_byte;  ///< in every row
  int first_row, end_row;
  bool whole_rows;
};

/// Returns the gmem address of a row of the box; before the tensor's row if x is negative.
std::byte *gmem_row(const TensorBox &box, int row) {
  const TensorMapFields &map = box.map;
  return map.base + box.z * map.stride_bytes[1] + (int64_t{box.y} + row) * map.stride_bytes[0] +
         int64_t{box.x} * map.element_bytes;
}

/// Traversal of an im2col box: input coordinates of the filter's first tap, from pixel to pixel.
struct Im2colCursor {
  explicit Im2colCursor(const Im2colBox &box)
      : map(box.map), w(box.place.w), h(box.place.h), n(box.place.n) {}

  void advance() {
    w += map.step[0];
    if (w <= map.extent[1] - 1 + map.upper[0]) return;
    w = map.lower[0];
    h += map.step[1];
    if (h <= map.extent[2] - 1 + map.upper[1]) return;
    h = map.lower[1];
    n++;
  }

  const TensorMapFields &map;
  int64_t w, h, n;
};

/// Calls f(row, pixel, first, end) for the rows of an im2col box, of which bytes [first, end) are
/// in the tensor.  `pixel`: gmem address of the box's first channel, even if that is outside the
/// pixel; NULL outside the tensor.
template <class F>
void for_each_pixel(const Im2colBox &box, const F &f) {
  const TensorMapFields &map = box.map;
  const auto bytes_from_c = [&](int64_t channels) {
    return static_cast<size_t>(std::clamp<int64_t>(channels, 0, map.box[0]) * map.element_bytes);
  };
  const size_t first = bytes_from_c(-int64_t{box.place.c});
  const size_t end = bytes_from_c(map.extent[0] - box.place.c);
  Im2colCursor cursor(box);
  for (int row = 0; row < map.box[1]; row++, cursor.advance()) {
    const int64_t w = cursor.w + box.place.w_offset, h = cursor.h + box.place.h_offset,
                  n = cursor.n;
    const bool inside = w >= 0 && w < map.extent[1] && h >= 0 && h < map.extent[2] && n >= 0 &&
                        n < map.extent[3] && first < end;
    std::byte *const pixel = map.base + n * map.stride_bytes[2] + h * map.stride_bytes[1] +
                             w * map.stride_bytes[0] + int64_t{box.place.c} * map.element_bytes;
    f(row, inside ? pixel : nullptr, first, end);
  }
}

}  // namespace

void load_box(const Im2colBox &box, std::byte *smem) {
  const TensorMapFields &map = box.map;
  const size_t row_bytes = static_cast<size_t>(map.row_bytes());
  alignas(kChunkBytes) std::byte whole[kMaxRowBytes] = {};
  for_each_pixel(box, [&](int row, const std::byte *from, size_t first, size_t end) {
    std::byte *const to = smem + static_cast<size_t>(row) * row_bytes;
    if (from == nullptr) {
      std::memset(to, 0, row_bytes);
    } else if (end - first == row_bytes) {
      copy_row(map, to, from, row);
    } else {
      std::memcpy(whole + first, from + first, end - first);
      copy_row(map, to, whole, row);
    }
  });
}

void store_box(const Im2colBox &box, const std::byte *smem) {
  const TensorMapFields &map = box.map;
  alignas(kChunkBytes) std::byte whole[kMaxRowBytes];
  for_each_pixel(box, [&](int row, std::byte *to, size_t first, size_t end) {
    if (to == nullptr) return;
    copy_row(map, whole, smem + row * map.row_bytes(), row);
    std::memcpy(to + first, whole + first, end - first);
  });
}

void load_box(const TensorBox &box, std::byte *smem) {
  const TensorMapFields &map = box.map;
  const size_t row_bytes = static_cast<size_t>(map.row_bytes());
  const Clip clip(box);
  alignas(kChunkBytes) std::byte whole[kMaxRowBytes];
  if (!clip.whole_rows) std::memset(whole, 0, row_bytes);
  for (int row = 0; row < map.box[1]; row++, smem += row_bytes) {
    if (row < clip.first_row || row >= clip.end_row) {
      std::memset(smem, 0, row_bytes);
    } else if (clip.whole_rows) {
      copy_row(map, smem, gmem_row(box, row), row);
    } else {
      std::memcpy(whole + clip.first_byte, gmem_row(box, row) + clip.first_byte, clip.bytes());
      copy_row(map, smem, whole, row);
    }
  }
}

void store_box(const TensorBox &box, const std::byte *smem) {
  const TensorMapFields &map = box.map;
  const Clip clip(box);
  alignas(kChunkBytes) std::byte whole[kMaxRowBytes];
  for (int row = clip.first_row; row < clip.end_row; row++) {
    const std::byte *const from = smem + row * map.row_bytes();
    if (clip.whole_rows) {
      copy_row(map, gmem_row(box, row), from, row);
    } else {
      copy_row(map, whole, from, row);
      std::memcpy(gmem_row(box, row) + clip.first_byte, whole + clip.first_byte, clip.bytes());
    }
  }
}

}  // namespace mp::host::engine

// ---------------------------------------------------------------------------- tensor maps

namespace mp::host {

namespace {

template <class Spec>
engine::TensorMapFields tensor_fields(const Spec &spec) {
  constexpr int kDimensions = std::extent_v<decltype(Spec::extent)>;
  engine::TensorMapFields fields{};
  fields.base = static_cast<std::byte *>(const_cast<void *>(spec.base));
  for (int i = 0; i < kDimensions; i++) fields.extent[i] = spec.extent[i];
  for (int i = 1; i < kDimensions; i++)
    fields.stride_bytes[i - 1] = tensor_map_stride_bytes(spec, i);
  fields.element_bytes = static_cast<int32_t>(dtype_bytes(spec.dtype));
  fields.swizzle_128 = spec.swizzle_128;
  return fields;
}

TensorMap encode(const TensorMapSpec &spec) {
  engine::TensorMapFields fields = tensor_fields(spec);
  for (int i = 0; i < 2; i++) fields.box[i] = spec.box[i];
  return std::bit_cast<TensorMap>(fields);
}

TensorMap encode_im2col(const Im2colSpec &spec) {
  engine::TensorMapFields fields = tensor_fields(spec);
  fields.box[0] = spec.channels;
  fields.box[1] = spec.pixels;
  for (int i = 0; i < 2; i++) {
    fields.lower[i] = static_cast<int8_t>(spec.lower[i]);
    fields.upper[i] = static_cast<int8_t>(spec.upper[i]);
    fields.step[i] = static_cast<int8_t>(spec.step[i]);
  }
  return std::bit_cast<TensorMap>(fields);
}

}  // namespace

const TensorMap &tensor_map(const TensorMapSpec &spec) {
  return cached_tensor_map(encode, spec);
}
const TensorMap &im2col_map(const Im2colSpec &spec) {
  return cached_tensor_map(encode_im2col, spec);
}

}  // namespace mp::host
