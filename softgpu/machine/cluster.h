// Start and end of the clusters of a launch.
#pragma once

#include <memory>
#include <vector>

#include "softgpu/machine/block.h"
#include "softgpu/machine/worker.h"
#include "softgpu/program/special_registers.h"

namespace softgpu {

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
  void recycle(Worker &, Cluster &) const;

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
