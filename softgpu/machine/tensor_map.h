// Tensor maps, and their encoding in the 128 bytes of a CUtensorMap.  Sources: PTX ISA, Tensors;
// CUDA Driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "softgpu/machine/swizzle.h"

namespace softgpu {

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
uint32_t size_of(ElementType);

struct TensorMap {
  bool is_im2col = false;
  bool fills_nan = false;  ///< NaN instead of 0 for elements outside the tensor
  uint8_t rank = 1;
  ElementType type = ElementType::kU8;
  Swizzle swizzle = Swizzle::kNone;
  uint64_t base = 0;  ///< address of the tensor
  std::array<uint64_t, 5> sizes{1, 1, 1, 1,
                                1};   ///< size of each dimension in elements, innermost first
  std::array<uint64_t, 4> strides{};  ///< in bytes; of all dimensions except the innermost
  std::array<uint16_t, 5> box{1, 1, 1, 1, 1};  ///< in elements
  std::array<uint8_t, 5> element_strides{1, 1, 1, 1, 1};
  // im2col: corners of the pixel box relative to the corners of the tensor, and size of a column.
  std::array<int16_t, 3> lower{}, upper{};
  uint16_t channels = 1, pixels = 1;

  uint32_t element_bytes() const { return size_of(type); }
  uint32_t row_bytes() const { return element_bytes() * (is_im2col ? channels : box[0]); }
  /// 64 bits, because the product may exceed 32 bits for a box that does not fit in shared memory.
  uint64_t num_rows() const {
    return is_im2col ? pixels : uint64_t{box[1]} * box[2] * box[3] * box[4];
  }
  uint64_t box_bytes() const { return row_bytes() * num_rows(); }
};

/// Convert between TensorMap and CUtensorMap.  unpack returns nullopt if the bytes are not a tensor
/// map.
std::array<std::byte, 128> pack(const TensorMap &);
std::optional<TensorMap> unpack(const std::byte *);

}  // namespace softgpu
