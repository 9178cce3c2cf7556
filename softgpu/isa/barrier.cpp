// bar, barrier and barrier.cluster: PTX ISA, Parallel Synchronization and Communication
// Instructions.

#include "softgpu/isa/decode.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/block.h"
#include "softgpu/machine/cluster.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/launch.h"
#include "softgpu/machine/race_check.h"
#include "softgpu/machine/warp.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

// ---- barriers of a block

enum class Reduction : uint8_t { kNone, kCount, kAll, kAny };

struct BarrierOperands {
  RegisterSlot barrier, num_threads, result;
  PredicateOperand predicate;
  Reduction reduction;
  bool has_num_threads, is_aligned, waits;
};

/// Returns the number of threads of the block, rounded up to complete warps.
uint32_t num_threads_of(const Block &block) {
  return static_cast<uint32_t>(block.warps.size()) * kWarpSize;
}

/// Returns the number of threads that must arrive.  Exited warps are excluded, unless the barrier
/// has an explicit thread count.
uint32_t num_needed(const NamedBarrier &barrier, const Block &block) {
  if (barrier.num_expected != num_threads_of(block)) return barrier.num_expected;
  return static_cast<uint32_t>(block.num_running) * kWarpSize;
}

void set_result(const NamedBarrier &barrier, const NamedBarrier::Arrival &arrival) {
  const auto &o = arrival.at->as<BarrierOperands>();
  Warp &warp = *arrival.warp;
  switch (o.reduction) {
    case Reduction::kNone:
      return;
    case Reduction::kCount:
      set_lanes(warp.row<uint32_t>(o.result), arrival.lanes, [&](int) { return barrier.num_true; });
      return;
    case Reduction::kAll:
      warp.set_predicate(o.result, arrival.lanes, barrier.num_false == 0 ? kAllLanes : 0);
      return;
    case Reduction::kAny:
      warp.set_predicate(o.result, arrival.lanes, barrier.num_true != 0 ? kAllLanes : 0);
      return;
  }
}

/// Wakes the waiting lanes and resets the barrier.
void complete(NamedBarrier &barrier, const Block &block) {
  if (RaceCheck *races = block.cluster->races.get()) races->complete(barrier);
  for (const NamedBarrier::Arrival &arrival : barrier.arrivals) {
    if (!arrival.waits) continue;
    set_result(barrier, arrival);
    arrival.warp->wake(arrival.lanes);
  }
  barrier.arrivals.clear();  // keeps its capacity
  barrier.num_arrived = barrier.num_expected = 0;
  barrier.num_true = barrier.num_false = 0;
  barrier.has_split_warps = false;
}

bool complete_if_all_came(NamedBarrier &barrier, const Block &block) {
  if (barrier.num_expected == 0 || barrier.num_arrived < num_needed(barrier, block)) return false;
  complete(barrier, block);
  return true;
}

/// Summary of the lanes of a warp that have arrived without the other lanes.
struct SplitWarp {
  Lanes lanes = 0;
  uint32_t num_counted = 0;
  NamedBarrier::Arrival *last = nullptr;
};
SplitWarp split_warp(NamedBarrier &barrier, const Warp &warp) {
  SplitWarp split;
  if (!barrier.has_split_warps) return split;
  for (NamedBarrier::Arrival &arrival : barrier.arrivals) {
    if (arrival.warp != &warp) continue;
    split.lanes |= arrival.lanes;
    split.num_counted += arrival.num_counted;
    split.last = &arrival;
  }
  return split;
}

NamedBarrier &barrier_of(Warp &warp, const Instruction &instruction, Lanes lanes) {
  const auto &o = instruction.as<BarrierOperands>();
  auto &barriers = warp.block->barriers;
  const auto index = uniform<uint32_t>(warp, instruction, lanes, o.barrier, "the barrier");
  if (index >= barriers.size()) {
    fault(warp, instruction, first_lane(lanes), "barrier %u does not exist", index);
  }
  return barriers[index];
}

/// Checks that all threads specify the same thread count.
void expect_threads(Warp &warp, const Instruction &instruction, Lanes lanes,
                    NamedBarrier &barrier) {
  const auto &o = instruction.as<BarrierOperands>();
  uint32_t expected = num_threads_of(*warp.block);
  if (o.has_num_threads) {
    expected =
        uniform<uint32_t>(warp, instruction, lanes, o.num_threads, "the threads of a barrier");
  }
  const int lane = first_lane(lanes);
  if (expected == 0 || expected % kWarpSize != 0) {
    fault(warp, instruction, lane, "a barrier of %u threads, not a multiple of 32", expected);
  }
  if (barrier.num_expected != 0 && barrier.num_expected != expected) {
    fault(warp, instruction, lane, "a barrier of %u threads, which another warp uses with %u",
          expected, barrier.num_expected);
  }
  barrier.num_expected = expected;
}

/// Counts the arrival of these lanes.  The last live lanes of a warp also count for its exited
/// lanes.
void count_arrival(Warp &warp, const Instruction &instruction, Lanes lanes, NamedBarrier &barrier) {
  const auto &o = instruction.as<BarrierOperands>();
  const SplitWarp before = split_warp(barrier, warp);
  if ((before.lanes & lanes) != 0) {
    fault(warp, instruction, first_lane(before.lanes & lanes), "arrives twice at a barrier");
  }
  const bool are_last = (warp.alive & ~(before.lanes | lanes)) == 0;
  const auto num_counted =
      are_last ? kWarpSize - before.num_counted : static_cast<uint32_t>(num_lanes(lanes));
  const bool is_split = lanes != warp.alive;
  if (is_split) barrier.has_split_warps = true;
  if (is_split || o.waits) {
    barrier.arrivals.push_back({&warp, lanes, num_counted, &instruction, o.waits});
  }
  if (RaceCheck *races = races_of(warp)) races->arrive(barrier, warp, lanes);
  barrier.num_arrived += num_counted;
  if (barrier.num_arrived > barrier.num_expected) {
    fault(warp, instruction, first_lane(lanes), "%u threads have arrived at a barrier of %u",
          barrier.num_arrived, barrier.num_expected);
  }
}

Step block_barrier(Warp &warp, const Instruction &instruction, Lanes lanes) {
  const auto &o = instruction.as<BarrierOperands>();
  if (o.is_aligned && !warp.is_converged()) return Step::kRetry;
  NamedBarrier &barrier = barrier_of(warp, instruction, lanes);
  expect_threads(warp, instruction, lanes, barrier);
  count_arrival(warp, instruction, lanes, barrier);
  if (o.reduction != Reduction::kNone) {
    const Lanes p = warp.predicate(o.predicate);
    barrier.num_true += static_cast<uint32_t>(num_lanes(lanes & p));
    barrier.num_false += static_cast<uint32_t>(num_lanes(lanes & ~p));
  }
  if (o.waits) warp.group().waits = true;
  const bool is_complete = complete_if_all_came(barrier, *warp.block);
  if (!o.waits) return Step::kNext;
  return is_complete ? Step::kJump : Step::kWait;
}

/// Decodes bar{.cta}.sync, .arrive and .red; and barrier, which without .aligned allows lanes to
/// arrive separately.
void decode_block_barrier(Decoder &d, Instruction &instruction) {
  const bool arrives = d.has("arrive"), reduces = d.has("red"), counts = d.has("popc");
  const size_t least = reduces ? 3 : arrives ? 2 : 1;
  need_form(d,
            !reduces ? "cta? aligned? sync|arrive"
            : counts ? "cta? aligned? red popc u32"
                     : "cta? aligned? red and|or pred",
            least, reduces ? 4 : 2);
  const auto &operands = d.operands();
  size_t next = 0;
  auto &o = instruction.make<BarrierOperands>();
  o.is_aligned = d.opcode() == "bar" || d.has("aligned");
  o.waits = !arrives;
  if (reduces) {
    o.reduction = counts ? Reduction::kCount : d.has("and") ? Reduction::kAll : Reduction::kAny;
    o.result = d.write(operands.at(next++), counts ? 4 : 1);
    o.predicate = d.read_predicate(operands.back());
  }
  o.barrier = d.read(operands.at(next++), 4);
  o.has_num_threads = next < operands.size() - (reduces ? 1 : 0);
  if (o.has_num_threads) o.num_threads = d.read(operands.at(next), 4);
  instruction.execute = block_barrier;
}

// ---- cluster barrier, which counts warps

void complete_if_all_came(Cluster &cluster) {
  if (cluster.num_arrived == 0 || cluster.num_arrived < cluster.num_running) return;
  if (cluster.races) cluster.races->complete_cluster();
  cluster.num_arrived = 0;
  cluster.generation++;
}

/// Has a bool operand: a relaxed arrival does not order the memory accesses of arriving threads
/// before those of waiting threads.
Step cluster_arrive(Warp &warp, const Instruction &instruction, Lanes lanes) {
  if (!warp.is_converged()) return Step::kRetry;
  Cluster &cluster = *warp.block->cluster;
  if (warp.has_arrived_at_cluster) {
    fault(warp, instruction, first_lane(lanes), "barrier.cluster.arrive again without a wait");
  }
  warp.has_arrived_at_cluster = true;
  warp.cluster_generation = cluster.generation;
  cluster.num_arrived++;
  const bool releases = !instruction.as<bool>();
  if (releases) warp.block->unfenced_mbarriers.release(warp.first_thread(), lanes);
  if (cluster.races) cluster.races->arrive_at_cluster(warp, releases);
  complete_if_all_came(cluster);
  return Step::kNext;
}

Step cluster_wait(Warp &warp, const Instruction &instruction, Lanes lanes) {
  if (!warp.is_converged()) return Step::kRetry;
  if (!warp.has_arrived_at_cluster) {
    fault(warp, instruction, first_lane(lanes), "barrier.cluster.wait without an arrival");
  }
  if (warp.block->cluster->generation == warp.cluster_generation) return Step::kRetry;
  warp.has_arrived_at_cluster = false;
  if (RaceCheck *races = races_of(warp)) races->wait_for_cluster(warp);
  return Step::kNext;
}

// ---- branches

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

Step branch(Warp &warp, const Instruction &instruction, Lanes lanes) {
  send(warp, lanes, instruction.as<uint32_t>());
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

// ---- griddepcontrol

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

// ---- setmaxnreg

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

void count_exited_lanes(Warp &warp) {
  for (NamedBarrier &barrier : warp.block->barriers) {
    const SplitWarp split = split_warp(barrier, warp);
    if (split.lanes == 0 || (warp.alive & ~split.lanes) != 0) continue;
    const uint32_t num_missing = kWarpSize - split.num_counted;
    split.last->num_counted += num_missing;
    barrier.num_arrived += num_missing;
    complete_if_all_came(barrier, *warp.block);
  }
}

void count_exited_warp(Warp &warp) {
  Block &block = *warp.block;
  for (NamedBarrier &barrier : block.barriers) {
    if (barrier.num_expected == num_threads_of(block)) complete_if_all_came(barrier, block);
  }
  Cluster &cluster = *block.cluster;
  const bool has_arrived =
      warp.has_arrived_at_cluster && warp.cluster_generation == cluster.generation;
  if (has_arrived) cluster.num_arrived--;
  complete_if_all_came(cluster);
}

void decode_barrier(Decoder &d, Instruction &instruction) {
  const bool is_bar = d.opcode() == "bar";
  if (is_bar && d.part(1) == "warp") return decode_warp_barrier(d, instruction);
  if (is_bar || d.part(1) != "cluster") return decode_block_barrier(d, instruction);
  const bool arrives = d.has("arrive");
  need_form(d,
            arrives ? "cluster arrive release|relaxed? aligned?" : "cluster wait acquire? aligned?",
            0);
  instruction.execute = arrives ? cluster_arrive : cluster_wait;
  instruction.make<bool>() = d.has("relaxed");
}

void decode_branch(Decoder &d, Instruction &instruction) {
  const std::string_view opcode = d.opcode();
  const bool branches = opcode == "bra";
  need_form(d, branches || opcode == "ret" ? "uni?" : "", branches ? 1 : 0);
  if (branches) instruction.make<uint32_t>() = d.label(d.operands()[0]);
  instruction.execute = branches ? branch : opcode == "ret" || opcode == "exit" ? leave : trap;
}

void decode_indexed_branch(Decoder &d, Instruction &instruction) {
  need_form(d, "idx uni?", 2);
  instruction.execute = indexed_branch;
  auto &o = instruction.make<IndexedBranch>();
  o.index = d.read(d.operands()[0], 4);
  o.table = d.branch_table(d.operands()[1], &o.size);
}

void decode_grid_dependency(Decoder &d, Instruction &instruction) {
  need_form(d, "launch_dependents|wait", 0);
  instruction.execute = d.has("wait") ? wait_for_prerequisite : launch_dependents;
}

void decode_set_max_registers(Decoder &d, Instruction &i) {
  need_form(d, "inc|dec sync aligned u32", 1);
  i.execute = set_max_registers;
  auto &o = i.make<SetMaxRegisters>();
  const int64_t count = constant_of(d, d.operands()[0]);
  if (count % 8 != 0 || count < 24 || count > 256) d.unknown("count of setmaxnreg");
  o = {static_cast<int>(count), d.has("inc")};
}

}  // namespace softgpu
