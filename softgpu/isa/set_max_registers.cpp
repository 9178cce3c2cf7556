// setmaxnreg: PTX ISA, Miscellaneous Instructions.
//
// PTX has an unlimited number of registers, so the limit itself cannot be checked.  The balance of
// the block can: an increase waits until other warps have released enough registers.
#include "softgpu/isa/operands.h"
#include "softgpu/isa/tensor.h"
#include "softgpu/machine/block.h"
#include "softgpu/machine/occupancy.h"

namespace softgpu {
namespace {

struct SetMaxRegisters {
  int count;
  bool increases;
};

int registers_of(const Warp &warp) {
  return warp.num_registers != 0 ? warp.num_registers : initial_registers(*warp.program);
}

Step set_max_registers(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!warp.is_converged()) return Step::kRetry;
  const auto &o = i.as<SetMaxRegisters>();
  const int now = registers_of(warp);
  if (o.increases ? o.count < now : o.count > now)
    fault(warp, i, first_lane(lanes), "setmaxnreg.%s to %d from %d", o.increases ? "inc" : "dec",
          o.count, now);
  if (o.increases) {
    int total = o.count - now;
    for (const auto &other : warp.block->warps) total += registers_of(*other);
    const int pool = initial_registers(*warp.program) * static_cast<int>(warp.block->warps.size());
    if (total > pool) return Step::kRetry;
  }
  warp.num_registers = o.count;
  return Step::kNext;
}

}  // namespace

bool decode_set_max_registers(Decoder &d, Instruction &i) {
  if (d.opcode() != "setmaxnreg") return false;
  need_parts(d, {d.part(1) == "inc" ? "inc" : "dec", "sync", "aligned", "u32"});
  need_operands(d, 1, 1);
  i.is_collective = true;
  i.execute = set_max_registers;
  auto &o = i.make<SetMaxRegisters>();
  const int64_t count = constant_of(d, d.operands()[0]);
  if (count % 8 != 0 || count < 24 || count > 256) d.unknown("count of setmaxnreg");
  o = {static_cast<int>(count), d.part(1) == "inc"};
  return true;
}

}  // namespace softgpu
