// bra, brx.idx, ret, exit, trap: PTX ISA, Control Flow Instructions.
#include "softgpu/isa/control_parts.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/warp.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

/// Moves lanes of the current group to another instruction; the others continue with the next.
void send(Warp &warp, Lanes lanes, uint32_t target) {
  LaneGroup &group = warp.group();
  if (lanes == group.lanes) {
    group.pc = target;
    return;
  }
  group.lanes &= ~lanes;
  group.pc++;
  warp.groups.push_back({target, lanes, false});
}

struct Branch {
  uint32_t target;
};

Step branch(Warp &warp, const Instruction &instruction, Lanes lanes) {
  send(warp, lanes, instruction.as<Branch>().target);
  return Step::kJump;
}

struct IndexedBranch {
  RegisterSlot index;
  uint32_t table, size;  ///< position in Program::branch_targets
};

/// Lanes that the guard excludes have left the group, because the instruction is collective.
Step indexed_branch(Warp &warp, const Instruction &instruction, Lanes lanes) {
  const auto &o = instruction.as<IndexedBranch>();
  const uint32_t *index = warp.row<uint32_t>(o.index);
  const uint32_t *targets = warp.program->branch_targets.data() + o.table;
  while (lanes != 0) {
    const int first = first_lane(lanes);
    if (index[first] >= o.size) {
      fault(warp, instruction, first, "brx.idx: index %u in a table of %u", index[first], o.size);
    }
    const Lanes same = lanes & lanes_where([&](int lane) { return index[lane] == index[first]; });
    lanes &= ~same;
    if (lanes == 0) {
      warp.group().pc = targets[index[first]];
    } else {
      warp.group().lanes &= ~same;
      warp.groups.push_back({targets[index[first]], same, false});
    }
  }
  return Step::kJump;
}

Step leave(Warp &warp, const Instruction &, Lanes lanes) {
  LaneGroup &group = warp.group();
  if (lanes == group.lanes) return Step::kExit;
  group.lanes &= ~lanes;
  group.pc++;
  leave_kernel(warp, lanes);
  return Step::kJump;
}

Step trap(Warp &warp, const Instruction &instruction, Lanes lanes) {
  fault(FaultKind::kTrap, warp, instruction, first_lane(lanes), "trap");
}

}  // namespace

bool decode_branch(Decoder &d, Instruction &instruction) {
  const std::string_view opcode = d.opcode();
  if (opcode == "bra") {
    allow_parts(d, {"uni"});
    need_operands(d, 1, 1);
    instruction.execute = branch;
    instruction.make<Branch>().target = d.label(d.operands().at(0));
  } else if (opcode == "brx" && d.part(1) == "idx") {
    allow_parts(d, {"idx", "uni"});
    need_operands(d, 2, 2);
    instruction.execute = indexed_branch;
    instruction.is_collective = true;
    auto &o = instruction.make<IndexedBranch>();
    o.index = d.read(d.operands().at(0), 4);
    o.table = d.branch_table(d.operands().at(1), &o.size);
  } else if (opcode == "ret") {
    allow_parts(d, {"uni"});
    need_operands(d, 0, 0);
    instruction.execute = leave;
  } else if (opcode == "exit" || opcode == "trap" || opcode == "brkpt") {
    need_parts(d, {});
    need_operands(d, 0, 0);
    instruction.execute = opcode == "exit" ? leave : trap;
  } else {
    return false;
  }
  return true;
}

}  // namespace softgpu
