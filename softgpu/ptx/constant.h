// Types and constants: PTX ISA, chapters Types and Constants.
#pragma once

#include "softgpu/ptx/reader.h"
#include "softgpu/ptx/syntax.h"

namespace softgpu::ptx {

/// Parses a signed number into a kImmediate.  Returns false, without consuming text, if there is
/// none.
bool read_constant(Reader &, Operand &);

}  // namespace softgpu::ptx
