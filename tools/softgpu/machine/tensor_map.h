// What a tensor map says, and how it lies in the 128 bytes of a CUtensorMap.  PTX ISA, Tensors;
// CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "tools/softgpu/machine/swizzle.h"

namespace softgpu {

/// As CUtensorMapDataType.
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

/// Bytes of an element.
uint32_t size_of(ElementType);

struct TensorMap {
  bool is_im2col = false;
  bool fills_nan = false;  ///< outside of the tensor, instead of 0
  uint8_t rank = 1;
  ElementType type = ElementType::kU8;
  Swizzle swizzle = Swizzle::kNone;
  uint64_t base = 0;  ///< address of the tensor
  std::array<uint64_t, 5> sizes{1, 1, 1, 1,
                                1};            ///< of dimensions, in elements, the innermost first
  std::array<uint64_t, 4> strides{};           ///< in bytes, of all dimensions but the innermost
  std::array<uint16_t, 5> box{1, 1, 1, 1, 1};  ///< in elements
  std::array<uint8_t, 5> element_strides{1, 1, 1, 1, 1};
  // Of im2col: the corners of the box of pixels, relative to those of the tensor, and what a column
  // has.
  std::array<int16_t, 3> lower{}, upper{};
  uint16_t channels = 1, pixels = 1;

  uint32_t element_bytes() const { return size_of(type); }
  uint32_t row_bytes() const { return element_bytes() * (is_im2col ? channels : box[0]); }
  /// Of a box that no shared memory holds it is more than 32 bits can count.
  uint64_t num_rows() const {
    return is_im2col ? pixels : uint64_t{box[1]} * box[2] * box[3] * box[4];
  }
  uint64_t box_bytes() const { return row_bytes() * num_rows(); }
};

/// A tensor map as CUtensorMap, and back: nothing if the bytes are no tensor map.
std::array<std::byte, 128> pack(const TensorMap &);
std::optional<TensorMap> unpack(const std::byte *);

}  // namespace softgpu
