// Dispatch of control flow, barriers, and exchange between lanes.
#include "softgpu/isa/control_parts.h"

namespace softgpu {

bool decode_control(Decoder &d, Instruction &instruction) {
  return decode_branch(d, instruction) || decode_barrier(d, instruction) ||
         decode_grid_dependency(d, instruction) || decode_exchange(d, instruction);
}

}  // namespace softgpu
