// How clusters of a launch begin and end.
#pragma once

#include <memory>
#include <vector>

#include "tools/softgpu/machine/block.h"
#include "tools/softgpu/machine/worker.h"
#include "tools/softgpu/program/special_registers.h"

namespace softgpu {

/// Bytes of shared memory of a block, but for the reserved ones.
uint32_t smem_of(const Grid &);

/// Makes the clusters of one launch.
class ClusterMaker {
 public:
  /// Throws Fault if the kernel reads a special register that is not known.
  explicit ClusterMaker(const Grid &);

  std::unique_ptr<Cluster> make(Worker &, KernelCounters &, uint64_t index) const;
  /// Keeps the memory of a cluster that is not needed any more.
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
  std::vector<std::byte> registers_;  ///< of a warp when it begins, as far as all have the same
  std::vector<Special> specials_;
  std::vector<SharedAddress> shared_addresses_;  ///< which differ with the rank
};

/// A warp whose lanes have all left the kernel: what it has under way is finished, and those who wait for it are told.
void end_warp(Warp &);

}  // namespace softgpu
