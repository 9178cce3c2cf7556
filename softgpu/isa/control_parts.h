// Parts of isa/control.cpp.
#pragma once

#include "softgpu/program/decoder.h"

namespace softgpu {

bool decode_branch(Decoder &, Instruction &);   // isa/branch.cpp: bra, brx.idx, ret, exit, trap
bool decode_barrier(Decoder &, Instruction &);  // isa/barrier.cpp: bar, barrier
bool decode_grid_dependency(Decoder &, Instruction &);  // isa/grid_dependency.cpp: griddepcontrol
/// isa/exchange.cpp: shfl, vote, match, redux, elect, bar.warp.sync
bool decode_exchange(Decoder &, Instruction &);

}  // namespace softgpu
