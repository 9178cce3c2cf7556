// Parts of decode_tensor.  Each returns false for other statements.
#pragma once

#include "softgpu/program/decoder.h"

namespace softgpu {

bool decode_wmma(Decoder &, Instruction &);               // wmma.cpp
bool decode_mma(Decoder &, Instruction &);                // mma.cpp
bool decode_matrix_rows(Decoder &, Instruction &);        // matrix_rows.cpp: ldmatrix, stmatrix
bool decode_wgmma(Decoder &, Instruction &);              // wgmma.cpp
bool decode_set_max_registers(Decoder &, Instruction &);  // set_max_registers.cpp: setmaxnreg

}  // namespace softgpu
