// Thread blocks, clusters and grids.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "softgpu/machine/bulk_copy.h"
#include "softgpu/machine/named_barrier.h"
#include "softgpu/machine/shared_memory.h"
#include "softgpu/machine/unfenced_mbarriers.h"
#include "softgpu/machine/warp.h"

namespace softgpu {

struct Cluster;
struct GridState;
class RaceCheck;
struct Worker;

using Dim3 = std::array<uint32_t, 3>;
inline uint64_t volume(const Dim3 &d) {
  return uint64_t{d[0]} * d[1] * d[2];
}

/// Parameters and state of a launch.
struct Grid {
  const Program *program = nullptr;
  Dim3 num_blocks{1, 1, 1}, num_threads{1, 1, 1};
  Dim3 cluster{1, 1, 1};  ///< in blocks
  uint32_t dynamic_smem = 0;
  uint64_t id = 0;
  int device = 0;
  std::vector<std::byte> storage;
  /// Program::parameter_bytes bytes in `storage`, aligned to 128 bytes.
  std::byte *parameters = nullptr;
  /// Set if a dependent grid may begin before this grid has ended (machine/dependence.h): returns
  /// that grid, or null.  Called once, by any thread.
  std::function<std::unique_ptr<Grid>()> begin_dependent;

  uint32_t blocks_per_cluster() const { return static_cast<uint32_t>(volume(cluster)); }
  uint32_t threads_per_block() const { return static_cast<uint32_t>(volume(num_threads)); }
  int warps_per_block() const {
    return static_cast<int>((threads_per_block() + kWarpSize - 1) / kWarpSize);
  }
};

struct Block {
  Cluster *cluster = nullptr;
  const Grid *grid = nullptr;
  Dim3 id{};          ///< %ctaid
  Dim3 in_cluster{};  ///< %cluster_ctaid
  uint32_t rank = 0;  ///< %cluster_ctarank
  SharedMemory smem;
  std::vector<std::byte> local;  ///< Program::local_bytes per thread
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<NamedBarrier, 16> barriers;
  std::vector<WgmmaSequence> wgmma;  ///< for each warpgroup
  UnfencedMbarriers unfenced_mbarriers;
  /// Addresses of tensor maps: modified but not released, and acquired by fence.proxy.tensormap.
  std::unordered_set<uint64_t> changed_maps, acquired_maps;
  int num_running = 0;             ///< warps that have not exited
  bool allows_dependents = false;  ///< has executed griddepcontrol.launch_dependents or exited
};

/// Blocks that one host thread runs concurrently.  A grid without clusters has clusters of one
/// block.
struct Cluster {
  const Grid *grid = nullptr;
  Worker *worker = nullptr;
  GridState *state = nullptr;
  /// State of the previous grid if this grid has begun before its end; otherwise null.
  const GridState *prerequisite = nullptr;
  uint64_t index = 0;  ///< index in the grid
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<BulkCopy> copies;  ///< active TMA copies
  uint32_t num_arrived = 0;      ///< warps that have arrived at barrier.cluster
  uint64_t generation = 0;       ///< phases of barrier.cluster
  uint32_t num_warps = 0, num_running = 0;
  /// waits, or has waited, at griddepcontrol.launch_dependents
  bool is_parked = false, was_parked = false;
  std::shared_ptr<RaceCheck> races;  ///< null unless options().checks_races
  uint64_t num_mbarrier_changes = 0;
};

/// Returns whether a wait for an mbarrier may return false: once, and again after any mbarrier has
/// changed.
inline bool may_give_up(const Warp &warp) {
  return warp.gave_up_at != warp.block->cluster->num_mbarrier_changes;
}

inline RaceCheck *races_of(const Warp &warp) {
  return warp.block->cluster->races.get();
}

/// Runs a launch, and the dependent launches that begin before its end.  Throws Fault.
void run_grid(const Grid &);

}  // namespace softgpu
