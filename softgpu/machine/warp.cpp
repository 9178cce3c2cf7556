// Execution of a warp: all lanes together while converged, group by group after divergence.
#include "softgpu/machine/warp.h"

#include <algorithm>

#include "softgpu/machine/block.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/worker.h"
#include "softgpu/options.h"
#include "softgpu/program/kernel_counters.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

/// Merges groups that have reached the same instruction.
void merge_groups(Warp &warp) {
  auto &groups = warp.groups;
  for (size_t i = 0; i < groups.size(); i++) {
    for (size_t j = i + 1; j < groups.size();) {
      const bool have_met = groups[i].pc == groups[j].pc && !groups[i].waits && !groups[j].waits;
      if (!have_met) {
        j++;
        continue;
      }
      groups[i].lanes |= groups[j].lanes;
      groups.erase(groups.begin() + static_cast<ptrdiff_t>(j));
    }
  }
}

/// Consecutive diverged quanta after which any group may run first.  Without this limit, a lane
/// that polls for another lane of its warp could starve that lane, because the group with the
/// lowest program counter always runs first.
constexpr uint32_t kPatience = 64;

/// One quantum of a warp.
class Run {
 public:
  Run(Warp &warp, int quantum)
      : warp_(warp),
        code_(warp.program->code.data()),
        num_code_(static_cast<uint32_t>(warp.program->code.size())),
        executed_(warp.tally->executed.data()),
        diverges_(options().diverges),
        left_(quantum) {}

  void run() {
    while (left_ > 0 && choose_group()) {
      const int before = left_;
      const Step step = run_group();
      if (left_ != before) blocked_ = 0;
      finish(step);
    }
    note_divergence();
  }
  int left() const { return left_; }

 private:
  bool is_ready(const LaneGroup &g) const { return !g.waits && (g.lanes & blocked_) == 0; }
  bool choose_group();
  int furthest_back() const;
  uint32_t meeting_point() const;
  Step run_group();
  void exclude(Lanes excluded);
  void finish(Step);
  void note_divergence();

  Warp &warp_;
  const Instruction *const code_;
  const uint32_t num_code_;
  uint64_t *const executed_;
  const bool diverges_;
  int left_;           ///< remaining instructions of the quantum
  Lanes blocked_ = 0;  ///< lanes of groups that must wait until another group has run
};

/// Sets Warp::current to the next group.  Returns false if all groups wait.
bool Run::choose_group() {
  auto &groups = warp_.groups;
  if (groups.size() > 1) merge_groups(warp_);
  warp_.current = furthest_back();
  if (warp_.current < 0) return false;

  const bool is_starving = warp_.num_diverged_quanta >= kPatience;
  if (groups.size() > 1 && (is_starving || (diverges_ && random_below(warp_, 4) == 0))) {
    const auto any = random_below(warp_, groups.size());
    if (is_ready(groups[any])) warp_.current = static_cast<int>(any);
  }
  return true;
}

/// Returns the index of the ready group with the lowest program counter, or -1.
int Run::furthest_back() const {
  int best = -1;
  uint32_t best_pc = 0;
  for (size_t i = 0; i < warp_.groups.size(); i++) {
    const LaneGroup &g = warp_.groups[i];
    if (!is_ready(g) || (best >= 0 && g.pc >= best_pc)) continue;
    best = static_cast<int>(i);
    best_pc = g.pc;
  }
  return best;
}

/// Returns the program counter at which the current group may merge with another one, or the end of
/// the code.
uint32_t Run::meeting_point() const {
  const uint32_t pc = warp_.group().pc;
  uint32_t meeting = num_code_;
  for (const LaneGroup &g : warp_.groups) {
    if (g.pc > pc && !g.waits) meeting = std::min(meeting, g.pc);
  }
  return meeting;
}

/// Moves lanes of the current group that a guard excludes past the instruction.
void Run::exclude(Lanes excluded) {
  LaneGroup &g = warp_.group();
  g.lanes &= ~excluded;
  warp_.groups.push_back({g.pc + 1, excluded, false});
}

/// Runs the current group until a decision is required.  Returns the result of its last
/// instruction, or kNext if the group has met another one or used up the quantum.
Step Run::run_group() {
  LaneGroup *group = &warp_.group();
  uint32_t pc = group->pc;
  Lanes group_lanes = group->lanes;
  uint32_t end = meeting_point();
  if (diverges_ && warp_.groups.size() > 1) end = std::min(end, pc + 1);

  while (pc < end && left_ > 0) {
    const Instruction &instruction = code_[pc];
    Lanes lanes = group_lanes;
    if (instruction.has_guard) {
      const Lanes guard = warp_.predicate(instruction.guard);
      lanes &= instruction.guard_is_negated ? ~guard : guard;
      if (lanes == 0) {
        left_--;
        pc++;
        continue;
      }
    }
    group->pc = pc;  // handlers may read it
    if (instruction.is_collective && lanes != group_lanes) {
      exclude(group_lanes & ~lanes);
      group = &warp_.group();
      group_lanes = lanes;
      end = pc + 1;
    }
    const Step step = instruction.execute(warp_, instruction, lanes);
    if (step == Step::kRetry) return step;
    left_--;
    executed_[pc]++;
    if (step == Step::kNext) {
      pc++;
      continue;
    }
    if (step != Step::kJump || warp_.groups.size() != 1) return step;
    pc = group->pc;
    group_lanes = group->lanes;
  }
  group->pc = pc;
  return pc < num_code_ ? Step::kNext : Step::kExit;
}

/// Applies the result of the current group's last instruction to the groups of the warp.
void Run::finish(Step step) {
  const Lanes lanes = warp_.group().lanes;
  if (step == Step::kRetry) blocked_ |= lanes;
  if (step == Step::kExit) {
    warp_.groups.erase(warp_.groups.begin() + warp_.current);
    leave_kernel(warp_, lanes);
  }
}

void Run::note_divergence() {
  if (left_ > 0) return;
  const bool is_over =
      warp_.num_diverged_quanta >= kPatience;  // quantum in which any group may run first
  const bool is_diverged = warp_.groups.size() > 1;
  warp_.num_diverged_quanta = is_diverged && !is_over ? warp_.num_diverged_quanta + 1 : 0;
}

}  // namespace

uint64_t run(Warp &warp, int quantum) {
  Run one(warp, quantum);
  one.run();
  const auto num_executed = static_cast<uint64_t>(quantum - one.left());
  warp.num_executed += num_executed;
  warp.tally->num_instructions += num_executed;
  return num_executed;
}

void leave_kernel(Warp &warp, Lanes lanes) {
  warp.alive &= ~lanes;
  if (warp.alive != 0) count_exited_lanes(warp);
}

template <class T>
T uniform(Warp &warp, const Instruction &instruction, Lanes lanes, RegisterSlot row,
          const char *what) {
  const T *values = warp.row<T>(row);
  const T first = values[first_lane(lanes)];
  const Lanes others = lanes & lanes_where([&](int lane) { return values[lane] != first; });
  if (others != 0) {
    fault(warp, instruction, first_lane(others), "the lanes of the warp differ in %s", what);
  }
  return first;
}
template uint32_t uniform(Warp &, const Instruction &, Lanes, RegisterSlot, const char *);
template uint64_t uniform(Warp &, const Instruction &, Lanes, RegisterSlot, const char *);

}  // namespace softgpu
