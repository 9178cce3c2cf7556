// The chapters of arithmetic: each decodes the statements of some types, false if the opcode is
// none of the chapter.
#pragma once

namespace softgpu {

class Form;

bool decode_integer(Form &);             // integer.cpp
bool decode_bits(Form &);                // bits.cpp
void decode_extended_precision(Form &);  // extended_precision.cpp: what has .cc, addc, subc, madc
bool decode_packed_integer(Form &);      // packed_integer.cpp: u16x2, s16x2
bool decode_float(Form &);               // float.cpp: f32, f64
bool decode_half(Form &);                // half_arithmetic.cpp: f16, bf16, f16x2, bf16x2
bool decode_compare(Form &);             // compare.cpp: setp, set
bool decode_select(Form &);              // select.cpp: selp, slct
bool decode_predicate(Form &);           // predicate.cpp: and, or, xor, not, mov of .pred
bool decode_convert(Form &);             // convert.cpp: cvt
bool decode_address_space(Form &);       // address_space.cpp: cvta, isspacep

}  // namespace softgpu
