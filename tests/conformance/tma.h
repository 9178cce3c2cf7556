// Tensors for TMA cases: small integers, different in adjacent elements, including padding.
#pragma once

#include "harness.h"

namespace mp::MP_TARGET {

/// TensorMapSpec without the base.
struct TensorShape {
  mp_dtype_t dtype;
  int64_t extent[3], stride[2];
  int32_t box[2];
  bool swizzle_128;

  int element_bytes() const { return dtype == MP_FP32 ? 4 : 2; }
  int box_bytes() const { return box[0] * box[1] * element_bytes(); }
  size_t tensor_bytes() const {
    const int64_t by_rows = extent[1] * stride[0], by_matrices = extent[2] * stride[1];
    return static_cast<size_t>(max_of(by_rows, by_matrices) * element_bytes());
  }
  TensorMapSpec spec(const void *base) const {
    return {base,
            dtype,
            {extent[0], extent[1], extent[2]},
            {stride[0], stride[1]},
            {box[0], box[1]},
            swizzle_128};
  }
  std::string name() const {
    return std::string(dtype == MP_FP32   ? "fp32"
                       : dtype == MP_BF16 ? "bf16"
                                          : "fp16") +
           " box " + std::to_string(box[0]) + "x" + std::to_string(box[1]) +
           (swizzle_128 ? ", swizzled" : ", plain");
  }
};

/// Injected bug: a map without its swizzle, or with a swizzle it should not have.
inline TensorShape with_other_swizzle(TensorShape shape) {
  if (shape.box[0] * shape.element_bytes() == 128) shape.swizzle_128 = !shape.swizzle_128;
  return shape;
}

inline std::vector<unsigned char> numbered_bytes(size_t bytes, int element_bytes, int first = 1) {
  std::vector<unsigned char> all(bytes);
  for (size_t i = 0; i < bytes / static_cast<size_t>(element_bytes); i++) {
    const int value = static_cast<int>(i % 1999) + first;
    const float as_float = static_cast<float>(value);
    const auto as_bits = static_cast<uint16_t>(value);
    if (element_bytes == 4)
      std::memcpy(&all[4 * i], &as_float, 4);
    else
      std::memcpy(&all[2 * i], &as_bits, 2);
  }
  return all;
}

/// Returns boxes as loaded, in rows of 16-bit elements or of fp32.
inline mpconform::Part box_part(const std::string &name, const TensorShape &shape,
                                std::vector<unsigned char> bytes) {
  return {name, static_cast<size_t>(shape.element_bytes()), static_cast<size_t>(shape.box[0]),
          std::move(bytes)};
}

/// Initializes one mbarrier for one arrival; called by all threads of a block.
MP_DEVICE SmemAddress single_barrier() {
  MP_SHARED(uint64_t, loaded, [1]);
  const SmemAddress bar = smem_address(loaded);
  if (thread_index() == 0) {
    mbarrier_init(bar, 1);
    mbarrier_init_fence();
  }
  block_sync();
  return bar;
}

}  // namespace mp::MP_TARGET
