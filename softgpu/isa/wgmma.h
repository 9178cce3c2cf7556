// Decoded operands of wgmma.mma_async.
#pragma once

#include <cstdint>

#include "softgpu/machine/tensor_map.h"
#include "softgpu/machine/wgmma_state.h"

namespace softgpu {

// Matrix descriptors: addresses of the core matrices of wgmma in shared memory.  PTX ISA,
// Asynchronous Warpgroup Level Matrix Shared Memory Layout, and Matrix Descriptor Format.

/// Core matrix: start of its eight rows of 16 bytes and their distance before swizzling, in units
/// of 16 bytes, like all descriptor fields.
struct CoreMatrix {
  uint32_t first, pitch;
};

class MatrixDescriptor {
 public:
  explicit MatrixDescriptor(uint64_t bits)
      : start_(field_at(bits, 0)),
        leading_(field_at(bits, 16)),
        stride_(field_at(bits, 32)),
        swizzle_(mode_of(bits >> 62)) {}

  static bool has_base_offset(uint64_t bits) { return (bits >> 49 & 7) != 0; }

  /// Returns a K-major core matrix: its rows are the `outer`-th 8 rows of A or columns of B; each
  /// row has the `block_k`-th 8 of k.
  CoreMatrix k_major(uint32_t outer, uint32_t block_k) const {
    const uint32_t first = start_ + outer * stride_;
    if (swizzle_ == Swizzle::kNone) return {first + block_k * leading_, 1};
    return {first + block_k, swizzle_span(swizzle_) / 16};
  }

  /// Returns an MN-major core matrix: each row has the `outer`-th 8 rows of A or columns of B; the
  /// rows are the `block_k`-th 8 of k.
  CoreMatrix mn_major(uint32_t outer, uint32_t block_k) const {
    if (swizzle_ == Swizzle::kNone) return {start_ + outer * stride_ + block_k * leading_, 1};
    const uint32_t pitch = swizzle_span(swizzle_) / 16;
    const uint32_t first = start_ + outer / pitch * leading_ + outer % pitch;
    return {first + block_k * stride_, pitch};
  }

  /// Returns the shared memory offset of a row.
  uint32_t row(const CoreMatrix &m, uint32_t i) const {
    return swizzled(16 * (m.first + i * m.pitch), swizzle_);
  }

 private:
  static uint32_t field_at(uint64_t bits, int from) {
    return static_cast<uint32_t>(bits >> from & 0x3FFF);
  }
  /// Descriptors number the modes in reverse order: 1 is 128 bytes, 3 is 32.
  static Swizzle mode_of(uint64_t mode) { return static_cast<Swizzle>((4 - mode) % 4); }

  uint32_t start_, leading_, stride_;
  Swizzle swizzle_;
};

struct Wgmma {
  uint32_t d;                 ///< index of the accumulator list
  uint32_t a_rows;            ///< index of the list of A in registers
  RegisterSlot descriptor_a;  ///< descriptor of A in shared memory
  RegisterSlot descriptor_b;
  RegisterSlot accumulates;  ///< scale-d: predicate
  uint16_t num_columns;
  bool is_bf16, a_is_in_registers;
  bool a_is_mn_major, b_is_mn_major;
  bool negates;  ///< negates the product: one of scale-a and scale-b is -1

  uint32_t num_registers() const { return num_columns / 2u; }
};

constexpr int kWgmmaDepth = 16;

/// Contents of registers whose values belong to a pending operation: a NaN.
constexpr uint32_t kInFlight = 0x7FBADBAD;

}  // namespace softgpu
