// Special registers that are constant while a warp runs: PTX ISA, chapter Special Registers.
#pragma once

#include <cstdint>
#include <string_view>

namespace softgpu {

struct Warp;

/// Returns the value for a lane of a warp.
using SpecialValue = uint64_t (*)(const Warp &, uint32_t lane);

/// Returns null for an unknown register.
SpecialValue special_register(std::string_view name);

}  // namespace softgpu
