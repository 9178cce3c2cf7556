// What a bulk reduction does to global memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/softgpu/machine/tensor_map.h"

namespace softgpu {

/// True of the types that add_elements knows.
bool can_add(ElementType);
/// to[i] += from[i] for the elements in so many bytes.
void add_elements(ElementType, std::byte *to, const std::byte *from, uint32_t bytes);

}  // namespace softgpu
