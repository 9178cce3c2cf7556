// What the tests of TMA in the simulator share: a tensor with something in every byte around
// its elements, and where a box of it must lie in shared memory, from the definition.
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

/// TMA reads and writes the rows of a tensor in units of so many bytes.
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

/// Elements and padding hold small integers, no two neighbours the same; a guard zone on either
/// side.
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
  /// With the padding, without the guard zones.  Matrices may lie side by side.
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

  /// NULL if there is no such element.
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

/// Where element (column, row) of a box lies behind the start of the box, which is a multiple of
/// 1024 bytes: bits 4..6 of the address are XORed with bits 7..9.
inline int place_in_box(const TensorShape &shape, int column, int row) {
  const int linear = (row * shape.box_columns + column) * bytes_of(shape.dtype);
  return shape.swizzle_128 ? linear ^ (linear >> 7 & 7) << 4 : linear;
}

/// The box as a load must leave it in shared memory.
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

/// The dynamic shared memory from its first multiple of 1024 bytes on: the strict mode moves it.
inline uint8_t *aligned_smem() {
  MP_DYN_SHARED(uint8_t, smem);
  const mp::host::SmemAddress address = mp::host::smem_address(smem);
  return smem + (kSwizzlePeriodBytes - address % kSwizzlePeriodBytes) % kSwizzlePeriodBytes;
}

}  // namespace mptest
