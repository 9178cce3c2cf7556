// Declarations of variables and parameters.  PTX ISA, chapter Variables.
#pragma once

#include "tools/softgpu/ptx/reader.h"
#include "tools/softgpu/ptx/syntax.h"

namespace softgpu::ptx {

/// Reads `.param .align 8 .b8 name[24]` or `.global .u32 name = 5`, up to what separates it from
/// the next.
Variable read_variable(Reader &);

/// Reads `(.param .b32 a, .param .b32 b)`.
std::vector<Variable> read_parameters(Reader &);

}  // namespace softgpu::ptx
