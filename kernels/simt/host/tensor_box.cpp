#include "kernels/simt/host/tensor_box.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace mp::host::engine {

namespace {

constexpr int kChunkBytes = 16;
constexpr int kSwizzleRows = 8;
constexpr int kSwizzledRowBytes = kSwizzleRows * kChunkBytes;
constexpr int kMaxRowBytes = 256 * 4;

/// The copy is its own inverse: the chunks trade places in pairs.
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

/// Which part of a box lies in the tensor.
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

  int first_byte, end_byte;  ///< of every row
  int first_row, end_row;
  bool whole_rows;
};

/// Where the row of the box begins in gmem; with negative x, before the row of the tensor.
std::byte *gmem_row(const TensorBox &box, int row) {
  const TensorMapFields &map = box.map;
  return map.base + box.z * map.stride_bytes[1] + (int64_t{box.y} + row) * map.stride_bytes[0] +
         int64_t{box.x} * map.element_bytes;
}

}  // namespace

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

void add_box(const TensorBox &box, const std::byte *smem) {
  // Hardware adds each element atomically.  Here the boxes of all blocks take turns, which is
  // faster than an atomic operation per element.
  static std::mutex turn;
  const std::lock_guard lock(turn);
  const TensorMapFields &map = box.map;
  const Clip clip(box);
  constexpr int kBytes = sizeof(float);
  float terms[kMaxRowBytes / kBytes];
  for (int row = clip.first_row; row < clip.end_row; row++) {
    copy_row(map, reinterpret_cast<std::byte *>(terms), smem + row * map.row_bytes(), row);
    float *const sums = reinterpret_cast<float *>(gmem_row(box, row));
    for (int i = clip.first_byte / kBytes; i < clip.end_byte / kBytes; i++) sums[i] += terms[i];
  }
}

}  // namespace mp::host::engine
