// Dispatch of arithmetic statements to the chapters of the PTX ISA.
#include "softgpu/isa/arithmetic.h"

#include "softgpu/isa/form.h"

namespace softgpu {

bool decode_arithmetic(Decoder &decoder, Instruction &instruction) {
  OpcodeCursor form(decoder, instruction);
  if (decode_compare(form) || decode_select(form)) return true;
  if (is_integer(form.type)) return decode_integer(form) || decode_bits(form);
  switch (form.type) {
    case Type::kU16x2:
    case Type::kS16x2:
      return decode_packed_integer(form);
    case Type::kF16:
    case Type::kBf16:
    case Type::kF16x2:
    case Type::kBf16x2:
      return decode_half(form);
    case Type::kF32:
    case Type::kF64:
      return decode_float(form);
    default:
      return false;
  }
}

}  // namespace softgpu
