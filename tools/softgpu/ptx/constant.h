// Types and constants.  PTX ISA, chapters Types and Constants.
#pragma once

#include "tools/softgpu/ptx/reader.h"
#include "tools/softgpu/ptx/syntax.h"

namespace softgpu::ptx {

/// Reads a number, with its sign, into a kImmediate; false, and nothing is taken, if none comes
/// next.
bool read_constant(Reader &, Operand &);

}  // namespace softgpu::ptx
