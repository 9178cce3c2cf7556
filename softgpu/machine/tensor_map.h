// Bytes of global memory in a box of a tensor map: PTX ISA, Tensors, Tiled Mode and Im2col Mode.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <type_traits>
#include <unordered_set>

namespace softgpu {

// Tensor maps in global memory that kernels have modified.  Modifications use the generic proxy,
// TMA reads use the tensormap proxy: one fence.proxy.tensormap must release a modification and
// another must acquire it (PTX ISA, Tensor Map Proxy).

enum class MapChange : uint8_t { kNone, kMade, kReleased };

class ChangedMaps {
 public:
  static ChangedMaps &get() {
    static ChangedMaps maps;
    return maps;
  }
  void set(uint64_t address, MapChange change) {
    const std::lock_guard lock(mutex_);
    changes_[address] = change;
  }
  void release(const std::unordered_set<uint64_t> &addresses) {
    const std::lock_guard lock(mutex_);
    for (const uint64_t address : addresses) changes_[address] = MapChange::kReleased;
  }
  MapChange at(uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = changes_.find(address);
    return found == changes_.end() ? MapChange::kNone : found->second;
  }
  /// Removes the maps in freed memory: a later map at the same address is unrelated.
  void forget(uint64_t begin, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    changes_.erase(changes_.lower_bound(begin), changes_.lower_bound(begin + bytes));
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, MapChange> changes_;
};

// Swizzle of 16-byte vectors in shared memory by TMA and wgmma: PTX ISA, Swizzling Modes.

/// Values as in CUtensorMapSwizzle.
enum class Swizzle : uint8_t { kNone, k32Bytes, k64Bytes, k128Bytes };

/// Returns the bytes of a row within which vectors are permuted.
constexpr uint32_t swizzle_span(Swizzle swizzle) {
  return 16u << static_cast<int>(swizzle);
}

/// Returns the swizzled address: bits from bit 4 up are XORed with the bits from bit 7 up, the
/// index of the 128-byte row.
constexpr uint32_t swizzled(uint32_t address, Swizzle swizzle) {
  const uint32_t mask = (1u << static_cast<int>(swizzle)) - 1;
  return address ^ (address >> 7 & mask) << 4;
}

// Tensor maps, and their encoding in the 128 bytes of a CUtensorMap.  Sources: PTX ISA, Tensors;
// CUDA Driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.

/// Values as in CUtensorMapDataType.
enum class ElementType : uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF64,
  kBf16,
  kF32Ftz,
  kTf32,
  kTf32Ftz,
};

/// Returns the size of an element in bytes.
constexpr uint32_t size_of(ElementType type) {
  // Same order as ElementType.
  constexpr uint8_t kSizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return kSizes[static_cast<size_t>(type)];
}

struct TensorMap {
  static constexpr uint32_t kMagic = 0x50414D54;  ///< "TMAP"

  uint32_t magic = kMagic;  ///< other contents of global memory are not a tensor map
  bool is_im2col = false;
  bool fills_nan = false;  ///< NaN instead of 0 for elements outside the tensor
  uint8_t rank = 1;
  ElementType type = ElementType::kU8;
  Swizzle swizzle = Swizzle::kNone;
  std::array<uint8_t, 5> element_strides{1, 1, 1, 1, 1};
  std::array<uint16_t, 5> box{1, 1, 1, 1, 1};  ///< in elements
  // im2col: corners of the pixel box relative to the corners of the tensor, and size of a column.
  std::array<int16_t, 3> lower{}, upper{};
  uint16_t channels = 1, pixels = 1;
  uint64_t base = 0;                             ///< address of the tensor
  std::array<uint64_t, 5> sizes{1, 1, 1, 1, 1};  ///< in elements, innermost first
  std::array<uint64_t, 4> strides{};  ///< in bytes; of all dimensions except the innermost

  uint32_t element_bytes() const { return size_of(type); }
  uint32_t row_bytes() const { return element_bytes() * (is_im2col ? channels : box[0]); }
  /// 64 bits, because the product may exceed 32 bits for a box that does not fit in shared memory.
  uint64_t num_rows() const {
    return is_im2col ? pixels : uint64_t{box[1]} * box[2] * box[3] * box[4];
  }
  uint64_t box_bytes() const { return row_bytes() * num_rows(); }
};
static_assert(std::has_unique_object_representations_v<TensorMap> && sizeof(TensorMap) <= 128);

/// Returns the bytes of a CUtensorMap.
inline std::array<std::byte, 128> pack(const TensorMap &map) {
  std::array<std::byte, 128> bytes{};
  std::memcpy(bytes.data(), &map, sizeof map);
  return bytes;
}
/// Returns the map in a CUtensorMap; nullopt if the bytes are not a tensor map.
inline std::optional<TensorMap> unpack(const std::byte *bytes) {
  TensorMap map;
  std::memcpy(&map, bytes, sizeof map);
  return map.magic == TensorMap::kMagic ? std::optional(map) : std::nullopt;
}

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
