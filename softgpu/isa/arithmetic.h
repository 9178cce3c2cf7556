// Decoders for the chapters on arithmetic.  Each handles the statements of some types, and returns
// false for opcodes of other chapters.
#pragma once

namespace softgpu {

class OpcodeCursor;

bool decode_integer(OpcodeCursor &);             // integer.cpp
bool decode_bits(OpcodeCursor &);                // bits.cpp
void decode_extended_precision(OpcodeCursor &);  // extended_precision.cpp: .cc, addc, subc, madc
bool decode_packed_integer(OpcodeCursor &);      // packed_integer.cpp: u16x2, s16x2
bool decode_float(OpcodeCursor &);               // float.cpp: f32, f64
bool decode_half(OpcodeCursor &);                // half_arithmetic.cpp: f16, bf16, f16x2, bf16x2
bool decode_compare(OpcodeCursor &);             // compare.cpp: setp, set
bool decode_select(OpcodeCursor &);              // select.cpp: selp, slct
bool decode_predicate(OpcodeCursor &);           // predicate.cpp: and, or, xor, not, mov of .pred
bool decode_convert(OpcodeCursor &);             // convert.cpp: cvt
bool decode_address_space(OpcodeCursor &);       // address_space.cpp: cvta, isspacep

}  // namespace softgpu
