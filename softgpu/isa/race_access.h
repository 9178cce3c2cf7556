// ld, st, atom and red under SOFTGPU_RACECHECK.
#pragma once

#include "softgpu/isa/load_store.h"

namespace softgpu {

/// Executes an instruction with AccessOperands and untranslated addresses, and checks for races.
Step execute_checked(Warp &, const Instruction &, Lanes, const LaneAddresses &);

}  // namespace softgpu
