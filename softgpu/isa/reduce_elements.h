// Bulk reductions to global memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softgpu/machine/tensor_map.h"

namespace softgpu {

/// Returns whether add_elements supports the type.
bool can_add(ElementType);
/// Adds to[i] += from[i] for the elements in `bytes` bytes.
void add_elements(ElementType, std::byte *to, const std::byte *from, uint32_t bytes);

}  // namespace softgpu
