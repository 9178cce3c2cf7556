// PTX ISA, chapter Special Registers: those that do not change while a warp runs.
#pragma once

#include <cstdint>
#include <string_view>

namespace softgpu {

struct Warp;

/// The value that a lane of a warp finds.
using SpecialValue = uint64_t (*)(const Warp &, uint32_t lane);

/// Null if there is no such register.
SpecialValue special_register(std::string_view name);

}  // namespace softgpu
