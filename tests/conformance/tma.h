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

  int element_bytes() const { return float_type(dtype).bytes; }
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
    return std::string(float_type(dtype).name) + " box " + std::to_string(box[0]) + "x" +
           std::to_string(box[1]) + (swizzle_128 ? ", swizzled" : ", plain");
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

/// Returns the offset of an element of a box in shared memory: with the swizzle, bits 4 to 6 of an
/// address are XORed with bits 7 to 9 (PTX ISA, "Tensors").
inline size_t place_in_box(const TensorShape &shape, int row, int column) {
  const auto at = static_cast<size_t>((row * shape.box[0] + column) * shape.element_bytes());
  return shape.swizzle_128 ? at ^ (at >> 7 & 7) << 4 : at;
}

struct Place {
  int x, y, z;
};

/// Calls visit(offset in the box, element of the tensor) for the elements of a box in the tensor.
template <class Visit>
void for_each_element(const TensorShape &shape, const Place &place, const Visit &visit) {
  for (int row = 0; row < shape.box[1]; row++)
    for (int column = 0; column < shape.box[0]; column++) {
      const int64_t x = int64_t{place.x} + column, y = int64_t{place.y} + row, z = place.z;
      const bool is_inside = x >= 0 && x < shape.extent[0] && y >= 0 && y < shape.extent[1] &&
                             z >= 0 && z < shape.extent[2];
      if (is_inside)
        visit(place_in_box(shape, row, column),
              static_cast<size_t>(z * shape.stride[1] + y * shape.stride[0] + x));
    }
}

/// Appends a box as stored in shared memory: zero outside the tensor.
inline void append_box(std::vector<unsigned char> &boxes, const TensorShape &shape,
                       const std::vector<unsigned char> &tensor, const Place &place) {
  const auto element_bytes = static_cast<size_t>(shape.element_bytes());
  const size_t start = boxes.size();
  boxes.resize(start + static_cast<size_t>(shape.box_bytes()));
  for_each_element(shape, place, [&](size_t at, size_t element) {
    std::memcpy(&boxes[start + at], &tensor[element * element_bytes], element_bytes);
  });
}

/// Returns boxes as loaded, in rows of 16-bit elements or of fp32.
inline mpconform::Part box_part(const std::string &name, const TensorShape &shape,
                                std::vector<unsigned char> got, std::vector<unsigned char> wanted) {
  return {name, static_cast<size_t>(shape.element_bytes()), static_cast<size_t>(shape.box[0]),
          std::move(got), std::move(wanted)};
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

constexpr int kThreads = 64;

struct StoreArgs {
  TensorMap map;
  int at[4];  ///< coordinates, innermost first
  int box_bytes;
  const unsigned char *box;  ///< contents of shared memory
};

/// Stores a box of a tensor, or of images with 4 dimensions.
template <int kDimensions>
MP_KERNEL(kThreads, 1)
store_box(MP_PARAM(StoreArgs) args) {
  if constexpr (has_sm90()) {
    unsigned char *const box = aligned_smem();
    copy_pieces(box, args.box, args.box_bytes, kThreads);
    async_proxy_fence();
    block_sync();
    if (thread_index() != 0) return;
    const auto &at = args.at;
    if constexpr (kDimensions == 4)
      tma_store_im2col(args.map, smem_address(box), at[0], at[1], at[2], at[3]);
    else
      tma_store(args.map, smem_address(box), at[0], at[1], at[2]);
    tma_store_commit();
    tma_store_wait<0>();
  }
}

}  // namespace mp::MP_TARGET
