// Declarations of variables and parameters: PTX ISA, chapter Variables.
#pragma once

#include "softgpu/ptx/reader.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu::ptx {

/// Parses `.param .align 8 .b8 name[24]` or `.global .u32 name = 5`, up to the separator.
Variable read_variable(Reader &);

/// Parses `(.param .b32 a, .param .b32 b)`.
std::vector<Variable> read_parameters(Reader &);

}  // namespace softgpu::ptx
