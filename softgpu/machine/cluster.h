// Start and end of the clusters of a launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/machine/block.h"
#include "softgpu/machine/worker.h"
#include "softgpu/program/program.h"

namespace softgpu {

struct Cluster;

// Programmatic dependent launch (PTX ISA, griddepcontrol).  A dependent grid may begin when every
// block of the previous grid in the stream has executed griddepcontrol.launch_dependents or has
// exited.  griddepcontrol.wait waits for the end of that grid only.  In a sequence of such grids,
// the last one therefore sees all earlier writes only if each grid has waited.
//
// Without a seed, execution follows the worst case that is allowed.  As many blocks as run
// concurrently pause in launch_dependents until the dependent grid has begun, which then runs as
// far as possible before they continue.

/// Progress of a grid, as seen by its dependent grid and its own blocks.
struct GridState {
  /// Blocks that have neither allowed dependents nor exited.
  std::atomic<uint64_t> num_blocks_holding{0};
  std::atomic<uint64_t> num_clusters_left{0};  ///< clusters that have not ended
  std::atomic<bool> parks{false};              ///< blocks pause in launch_dependents
  std::atomic<uint64_t> num_parked{0};         ///< clusters that pause
  std::atomic<bool> may_leave{false};          ///< one of these clusters may continue

  bool allows_dependents() const { return num_blocks_holding == 0; }
  bool has_ended() const { return num_clusters_left == 0; }
};

/// Marks the block as having executed launch_dependents or exited.
void allow_dependents(Block &);
/// Returns whether the blocks of the cluster continue after launch_dependents, which one of them
/// has executed.
bool may_leave_parking(Cluster &);

/// Returns the shared memory of a block in bytes, without the reserved part.
uint32_t smem_of(const Grid &);

/// Returns %ctaid of a block of a cluster.
Dim3 block_id(const Grid &, uint64_t cluster, uint32_t rank);

/// Creates the clusters of one launch.
class ClusterMaker {
 public:
  /// Throws Fault if the kernel reads an unsupported special register.
  explicit ClusterMaker(const Grid &);

  std::unique_ptr<Cluster> make(Worker &, KernelCounters &, uint64_t index) const;
  /// Keeps the memory of a finished cluster for reuse.
  static void recycle(Worker &, Cluster &);

 private:
  struct Special {
    RegisterSlot row;
    uint8_t width;
    SpecialValue value;
  };
  struct SharedAddress {
    RegisterSlot row;
    uint8_t width;
    uint64_t offset;
  };

  std::unique_ptr<Block> make_block(Worker &, KernelCounters &, Cluster &, uint32_t rank) const;
  std::unique_ptr<Warp> make_warp(Worker &, KernelCounters &, Block &, int index) const;
  void set_registers(Worker &, Warp &) const;

  const Grid &grid_;
  std::vector<std::byte> registers_;  ///< initial registers that all warps share
  std::vector<Special> specials_;
  std::vector<SharedAddress> shared_addresses_;  ///< addresses that depend on the rank
};

/// Ends a warp whose lanes have all exited: completes its asynchronous operations and updates
/// barriers.
void end_warp(Warp &);

}  // namespace softgpu
