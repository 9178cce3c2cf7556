// Decoded operands of wgmma.mma_async.
#pragma once

#include <cstdint>

#include "softgpu/machine/wgmma_state.h"

namespace softgpu {

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
