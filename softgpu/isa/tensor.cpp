// Dispatch of matrix instructions: PTX ISA, Warp Level Matrix Instructions and Asynchronous
// Warpgroup Level Matrix Instructions.
#include "softgpu/isa/tensor.h"

namespace softgpu {

bool decode_tensor(Decoder &d, Instruction &i) {
  return decode_wmma(d, i) || decode_mma(d, i) || decode_matrix_rows(d, i) || decode_wgmma(d, i) ||
         decode_set_max_registers(d, i);
}

}  // namespace softgpu
