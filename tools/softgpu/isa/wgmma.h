// What wgmma.mma_async says, once decoded.
#pragma once

#include <cstdint>

#include "tools/softgpu/machine/wgmma_state.h"

namespace softgpu {

struct Wgmma {
  uint32_t d;                 ///< list of the accumulators
  uint32_t a_rows;            ///< list of A in registers
  RegisterSlot descriptor_a;  ///< or its descriptor
  RegisterSlot descriptor_b;
  RegisterSlot accumulates;  ///< scale-d: a predicate
  uint16_t num_columns;
  bool is_bf16, a_is_in_registers;
  bool a_is_mn_major, b_is_mn_major;
  bool negates;  ///< the product: one of scale-a and scale-b is -1

  uint32_t num_registers() const { return num_columns / 2u; }
};

constexpr int kWgmmaDepth = 16;

/// What rows hold whose values belong to an operation in flight: a NaN.
constexpr uint32_t kInFlight = 0x7FBADBAD;

}  // namespace softgpu
