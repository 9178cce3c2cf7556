#include "softgpu/machine/tensor_map.h"

#include <cstring>
#include <type_traits>

namespace softgpu {
namespace {

constexpr uint32_t kMagic = 0x50414D54;  ///< "TMAP"

/// Stores the last index instead of the size, which may be 2^32.
struct Packed {
  uint32_t magic;
  uint8_t is_im2col, fills_nan, rank, type, swizzle;
  std::array<uint8_t, 5> element_strides;
  std::array<uint16_t, 5> box;
  std::array<int16_t, 3> lower, upper;
  uint16_t channels, pixels;
  std::array<uint32_t, 5> last;
  std::array<uint64_t, 4> strides;
  uint64_t base;
};
static_assert(sizeof(Packed) <= 128 && std::is_trivially_copyable_v<Packed>);

}  // namespace

uint32_t size_of(ElementType type) {
  switch (type) {
    case ElementType::kU8:
      return 1;
    case ElementType::kU16:
    case ElementType::kF16:
    case ElementType::kBf16:
      return 2;
    case ElementType::kU64:
    case ElementType::kS64:
    case ElementType::kF64:
      return 8;
    default:
      return 4;
  }
}

std::array<std::byte, 128> pack(const TensorMap &map) {
  Packed packed{};
  packed.magic = kMagic;
  packed.is_im2col = map.is_im2col;
  packed.fills_nan = map.fills_nan;
  packed.rank = map.rank;
  packed.type = static_cast<uint8_t>(map.type);
  packed.swizzle = static_cast<uint8_t>(map.swizzle);
  packed.element_strides = map.element_strides;
  packed.box = map.box;
  packed.lower = map.lower;
  packed.upper = map.upper;
  packed.channels = map.channels;
  packed.pixels = map.pixels;
  for (size_t i = 0; i < 5; i++) packed.last[i] = static_cast<uint32_t>(map.sizes[i] - 1);
  packed.strides = map.strides;
  packed.base = map.base;
  std::array<std::byte, 128> bytes{};
  std::memcpy(bytes.data(), &packed, sizeof packed);
  return bytes;
}

std::optional<TensorMap> unpack(const std::byte *bytes) {
  Packed packed;
  std::memcpy(&packed, bytes, sizeof packed);
  if (packed.magic != kMagic) return std::nullopt;
  TensorMap map;
  map.is_im2col = packed.is_im2col != 0;
  map.fills_nan = packed.fills_nan != 0;
  map.rank = packed.rank;
  map.type = static_cast<ElementType>(packed.type);
  map.swizzle = static_cast<Swizzle>(packed.swizzle);
  map.element_strides = packed.element_strides;
  map.box = packed.box;
  map.lower = packed.lower;
  map.upper = packed.upper;
  map.channels = packed.channels;
  map.pixels = packed.pixels;
  for (size_t i = 0; i < 5; i++) map.sizes[i] = uint64_t{packed.last[i]} + 1;
  map.strides = packed.strides;
  map.base = packed.base;
  return map;
}

}  // namespace softgpu
