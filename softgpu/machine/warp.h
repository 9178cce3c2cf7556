// Warp: 32 threads that execute together.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/machine/async_copy.h"
#include "softgpu/machine/lanes.h"
#include "softgpu/machine/wgmma_state.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

struct Program;
struct KernelCounters;

/// Lanes of a warp with the same program counter; one group unless the warp has diverged.
struct LaneGroup {
  uint32_t pc;  ///< index in Program::code
  Lanes lanes;
  bool waits;  ///< waits until another warp wakes it
};

struct Warp {
  std::byte *registers = nullptr;  ///< Program::register_bytes bytes, aligned to 64 bytes
  size_t register_file_bytes = 0;  ///< allocated size, at least Program::register_bytes
  const Program *program = nullptr;
  Block *block = nullptr;
  KernelCounters *tally = nullptr;  ///< counters of the host thread that runs this warp
  int index = 0;                    ///< index in the block
  Lanes alive = 0;                  ///< lanes that have not exited
  std::vector<LaneGroup> groups;
  int current = 0;  ///< index of the executing group
  uint64_t num_executed = 0;
  uint64_t num_rests = 0;  ///< quanta that the warp still skips (SOFTGPU_LAG)
  bool has_rested = false;
  uint32_t num_diverged_quanta = 0;  ///< consecutive quanta at whose end the warp was diverged

  const Instruction *blocked_at = nullptr;  ///< mbarrier wait that is being retried
  bool gives_up = false;                    ///< the next retry of that wait returns false
  /// Cluster::num_mbarrier_changes when a wait last returned false
  uint64_t gave_up_at = ~uint64_t{0};

  CopyGroups copies;  ///< cp.async
  BulkGroups bulk;    ///< cp.async.bulk stores and async proxy fences
  WgmmaState wgmma;
  int num_registers = 0;  ///< per thread, after setmaxnreg; 0: initial number
  bool has_arrived_at_cluster = false;
  uint64_t cluster_generation = 0;  ///< phase of the cluster barrier at which the warp has arrived

  LaneGroup &group() { return groups[static_cast<size_t>(current)]; }
  /// Returns whether all live lanes execute together, as .aligned instructions require.
  bool is_converged() { return group().lanes == alive; }
  int thread_of(int lane) const { return index * kWarpSize + lane; }
  int first_thread() const { return index * kWarpSize; }

  /// Returns the 32 values of a register.
  template <class T>
  T *row(RegisterSlot row) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return reinterpret_cast<T *>(registers + row);
  }
  Lanes &predicate(RegisterSlot row) { return *reinterpret_cast<Lanes *>(registers + row); }
  Lanes predicate(const PredicateOperand &p) {
    return p.is_negated ? ~predicate(p.row) : predicate(p.row);
  }
  /// Sets a predicate in the given lanes.
  void set_predicate(RegisterSlot row, Lanes lanes, Lanes values) {
    Lanes &p = predicate(row);
    p = (p & ~lanes) | (values & lanes);
  }
  /// Resumes the waiting group of these lanes after its instruction.
  void wake(Lanes lanes) {
    for (LaneGroup &g : groups) {
      if (g.lanes != lanes) continue;
      g.waits = false;
      g.pc++;
    }
  }
};

/// Executes up to `quantum` instructions and returns their number.  After 0, the warp waits for
/// others; a warp without groups has exited.
uint64_t run(Warp &, int quantum);

/// Removes exiting lanes, which are no longer in a group, from the warp.
void leave_kernel(Warp &, Lanes);

/// Returns the common value of a register in all lanes of the set.  Faults, naming `what`, if the
/// lanes differ.
template <class T>
T uniform(Warp &, const Instruction &, Lanes, RegisterSlot, const char *what);

}  // namespace softgpu
