// Helpers of the TMA tests: a tensor with values in its padding and guard zones around it, and the
// layout of its boxes in shared memory.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/simt/sm90.h"
#include "testing.h"

namespace mptest {

constexpr int kSwizzlePeriodBytes = 1024;

inline int bytes_of(mp_dtype_t dtype) {
  return dtype == MP_FP32 ? 4 : 2;
}

/// Granularity of TMA accesses to the rows of a tensor.
constexpr int kUnitBytes = 16;

struct TensorShape {
  mp_dtype_t dtype;
  int columns, rows, matrices;
  int row_stride, matrix_stride;  ///< elements
  int box_columns, box_rows;
  bool swizzle_128;

  int box_bytes() const { return box_rows * box_columns * bytes_of(dtype); }
  int unit() const { return kUnitBytes / bytes_of(dtype); }  ///< elements

  TensorShape with_columns(int count) const {
    TensorShape shape = *this;
    shape.columns = count;
    return shape;
  }
};

/// Tensor between two guard zones.  Elements and padding are small integers; neighbors differ.
class Tensor {
 public:
  explicit Tensor(const TensorShape &shape)
      : shape_(shape), bytes_(2 * kGuardBytes + size_bytes() + kAlignment) {
    const auto misaligned = reinterpret_cast<uintptr_t>(bytes_.data()) % kAlignment;
    base_ = bytes_.data() + kGuardBytes + (kAlignment - misaligned);
    const size_t count = size_bytes() / static_cast<size_t>(bytes_of(shape.dtype));
    for (size_t i = 0; i < count; i++) set(i, static_cast<int>(i % 1999) + 1);
  }
  Tensor(const Tensor &) = delete;
  Tensor &operator=(const Tensor &) = delete;

  uint8_t *base() { return base_; }
  /// Size with padding, without guard zones.  Matrices may interleave.
  size_t size_bytes() const {
    const int count =
        std::max(shape_.matrices * shape_.matrix_stride, shape_.rows * shape_.row_stride);
    return static_cast<size_t>(count * bytes_of(shape_.dtype));
  }
  const std::vector<uint8_t> &bytes() const { return bytes_; }

  mp::TensorMapSpec spec() const {
    return {base_,
            shape_.dtype,
            {shape_.columns, shape_.rows, shape_.matrices},
            {shape_.row_stride, shape_.matrix_stride},
            {shape_.box_columns, shape_.box_rows},
            shape_.swizzle_128};
  }
  mp::TensorMap map() const { return mp::host::tensor_map(spec()); }

  /// Returns the address of an element, NULL if it is out of bounds.
  uint8_t *element(int64_t x, int64_t y, int64_t z) {
    if (x < 0 || x >= shape_.columns || y < 0 || y >= shape_.rows || z < 0 || z >= shape_.matrices)
      return nullptr;
    const int64_t index = z * shape_.matrix_stride + y * shape_.row_stride + x;
    return base_ + index * bytes_of(shape_.dtype);
  }

 private:
  static constexpr size_t kGuardBytes = 4096, kAlignment = 128;

  void set(size_t index, int value) {
    const float as_float = static_cast<float>(value);
    const uint16_t as_bits = static_cast<uint16_t>(value);
    if (shape_.dtype == MP_FP32)
      std::memcpy(base_ + 4 * index, &as_float, 4);
    else
      std::memcpy(base_ + 2 * index, &as_bits, 2);
  }

  TensorShape shape_;
  std::vector<uint8_t> bytes_;
  uint8_t *base_;
};

/// Byte offset of element (column, row) in a box that starts at a multiple of 1024 bytes: the
/// swizzle XORs bits 4..6 of the address with bits 7..9.
inline int place_in_box(const TensorShape &shape, int column, int row) {
  const int linear = (row * shape.box_columns + column) * bytes_of(shape.dtype);
  return shape.swizzle_128 ? linear ^ (linear >> 7 & 7) << 4 : linear;
}

/// Returns the contents of shared memory that a load must produce.
inline std::vector<uint8_t> expected_box(Tensor &tensor, const TensorShape &shape, int64_t x,
                                         int64_t y, int64_t z) {
  std::vector<uint8_t> box(static_cast<size_t>(shape.box_bytes()), 0);
  for (int row = 0; row < shape.box_rows; row++)
    for (int column = 0; column < shape.box_columns; column++)
      if (const uint8_t *const element = tensor.element(x + column, y + row, z))
        std::memcpy(&box[static_cast<size_t>(place_in_box(shape, column, row))], element,
                    static_cast<size_t>(bytes_of(shape.dtype)));
  return box;
}

/// Returns the first multiple of 1024 bytes in dynamic shared memory, whose start varies in the
/// strict mode.
inline uint8_t *aligned_smem() {
  MP_DYN_SHARED(uint8_t, smem);
  const mp::host::SmemAddress address = mp::host::smem_address(smem);
  return smem + (kSwizzlePeriodBytes - address % kSwizzlePeriodBytes) % kSwizzlePeriodBytes;
}

}  // namespace mptest
