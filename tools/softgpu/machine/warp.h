// 32 threads that execute together.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/softgpu/machine/async_copy.h"
#include "tools/softgpu/machine/bulk_groups.h"
#include "tools/softgpu/machine/lanes.h"
#include "tools/softgpu/machine/wgmma_state.h"
#include "tools/softgpu/program/instruction.h"

namespace softgpu {

struct Block;
struct Program;
struct KernelCounters;

/// Lanes of a warp that have the same program counter.  A warp that has not diverged is one group.
struct LaneGroup {
  uint32_t pc;  ///< index in Program::code
  Lanes lanes;
  bool waits;  ///< until another warp wakes it
};

struct Warp {
  std::byte *registers = nullptr;  ///< Program::register_bytes of them, aligned to 64 bytes
  size_t register_file_bytes = 0;  ///< that were allocated, no fewer
  const Program *program = nullptr;
  Block *block = nullptr;
  KernelCounters *tally = nullptr;  ///< of the thread of the host that runs this warp
  int index = 0;                    ///< in the block
  Lanes alive = 0;                  ///< that have not left the kernel
  std::vector<LaneGroup> groups;
  int current = 0;  ///< the group that executes now
  uint64_t num_executed = 0;
  uint64_t num_rests = 0;  ///< quanta that it still lets pass (SOFTGPU_LAG)
  bool has_rested = false;
  uint32_t num_diverged_quanta = 0;  ///< that ended one after the other with the warp diverged

  const Instruction *blocked_at = nullptr;  ///< a wait for an mbarrier that it tries again
  bool gives_up = false;                    ///< at that wait, when it is tried next
  uint64_t gave_up_at = ~uint64_t{0};       ///< Cluster::num_mbarrier_changes when it last did

  CopyGroups copies;  ///< cp.async
  BulkGroups bulk;    ///< cp.async.bulk stores, and when lanes have fenced the async proxy
  WgmmaState wgmma;
  int num_registers = 0;  ///< a thread, as setmaxnreg left it; 0: as the kernel began
  bool has_arrived_at_cluster = false;
  uint64_t cluster_generation = 0;  ///< of the cluster barrier at which it has arrived

  LaneGroup &group() { return groups[static_cast<size_t>(current)]; }
  /// Instructions marked .aligned are executed by all living lanes together.
  bool is_converged() { return group().lanes == alive; }
  int thread_of(int lane) const { return index * kWarpSize + lane; }
  int first_thread() const { return index * kWarpSize; }

  /// The 32 values of a register.
  template <class T>
  T *row(RegisterSlot row) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return reinterpret_cast<T *>(registers + row);
  }
  Lanes &predicate(RegisterSlot row) { return *reinterpret_cast<Lanes *>(registers + row); }
  /// Sets a predicate in some lanes.
  void set_predicate(RegisterSlot row, Lanes lanes, Lanes values) {
    Lanes &p = predicate(row);
    p = (p & ~lanes) | (values & lanes);
  }
  /// The group of these lanes, which waits, goes on behind its instruction.
  void wake(Lanes lanes) {
    for (LaneGroup &g : groups) {
      if (g.lanes != lanes) continue;
      g.waits = false;
      g.pc++;
    }
  }
};

/// Executes up to `quantum` instructions; returns how many.  A warp that returns 0 waits for
/// others, and one that has no groups left has left the kernel.
uint64_t run(Warp &, int quantum);

/// These lanes, which are in no group any more, have left the kernel.
void leave_kernel(Warp &, Lanes);

/// The value that all lanes of the set have in a row, or a fault that says the lanes differ in
/// `what`.
template <class T>
T uniform(Warp &, const Instruction &, Lanes, RegisterSlot, const char *what);

}  // namespace softgpu
