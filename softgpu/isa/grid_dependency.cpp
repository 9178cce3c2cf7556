// griddepcontrol: PTX ISA, Parallel Synchronization and Communication Instructions;
// machine/dependence.h.
#include "softgpu/isa/control_parts.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/block.h"
#include "softgpu/machine/dependence.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {
namespace {

/// The first thread of a block that executes it counts for the block.
Step launch_dependents(Warp &warp, const Instruction &, Lanes) {
  allow_dependents(*warp.block);
  return may_leave_parking(*warp.block->cluster) ? Step::kNext : Step::kRetry;
}

Step wait_for_prerequisite(Warp &warp, const Instruction &, Lanes lanes) {
  const GridState *const prerequisite = warp.block->cluster->prerequisite;
  if (prerequisite != nullptr && !prerequisite->has_ended()) return Step::kRetry;
  if (RaceCheck *races = races_of(warp)) races->wait_for_grid(warp, lanes);
  return Step::kNext;
}

}  // namespace

bool decode_grid_dependency(Decoder &d, Instruction &instruction) {
  if (d.opcode() != "griddepcontrol") return false;
  const std::string_view action = d.part(1);
  if (action != "launch_dependents" && action != "wait") d.unknown("action of griddepcontrol");
  need_parts(d, {action});
  need_operands(d, 0, 0);
  instruction.execute = action == "wait" ? wait_for_prerequisite : launch_dependents;
  return true;
}

}  // namespace softgpu
