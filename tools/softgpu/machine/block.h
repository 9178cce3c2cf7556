// A thread block, its cluster, and the grid that they belong to.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "tools/softgpu/machine/bulk_copy.h"
#include "tools/softgpu/machine/named_barrier.h"
#include "tools/softgpu/machine/shared_memory.h"
#include "tools/softgpu/machine/unfenced_mbarriers.h"
#include "tools/softgpu/machine/warp.h"

namespace softgpu {

struct Cluster;
struct GridState;
class RaceCheck;
struct Worker;

using Dim3 = std::array<uint32_t, 3>;
inline uint64_t volume(const Dim3 &d) {
  return uint64_t{d[0]} * d[1] * d[2];
}

/// A launch.
struct Grid {
  const Program *program = nullptr;
  Dim3 num_blocks{1, 1, 1}, num_threads{1, 1, 1};
  Dim3 cluster{1, 1, 1};  ///< blocks of a cluster
  uint32_t dynamic_smem = 0;
  uint64_t id = 0;
  int device = 0;
  std::vector<std::byte> storage;
  /// Program::parameter_bytes of them, in `storage`, aligned to 128 bytes.
  std::byte *parameters = nullptr;
  /// Where a grid was launched that may begin before this one has ended (machine/dependence.h): gives it, or null.
  /// Called once, by any thread.
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
  std::vector<std::byte> local;  ///< Program::local_bytes a thread
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<NamedBarrier, 16> barriers;
  std::vector<WgmmaSequence> wgmma;  ///< of each warpgroup
  UnfencedMbarriers unfenced_mbarriers;
  /// Addresses of tensor maps: changed and not yet released, and after fence.proxy.tensormap acquire.
  std::unordered_set<uint64_t> changed_maps, acquired_maps;
  int num_running = 0;             ///< warps that have not left the kernel
  bool allows_dependents = false;  ///< has executed griddepcontrol.launch_dependents, or exited
};

/// Blocks that run at the same time on one thread of the host; a grid without clusters is one of
/// clusters of one block.
struct Cluster {
  const Grid *grid = nullptr;
  Worker *worker = nullptr;
  GridState *state = nullptr;
  /// Of the grid before, beside which this one has begun; null: it has not begun early.
  const GridState *prerequisite = nullptr;
  uint64_t index = 0;  ///< in the grid
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<BulkCopy> copies;  ///< TMA under way
  uint32_t num_arrived = 0;      ///< warps at barrier.cluster
  uint64_t generation = 0;       ///< of that barrier
  uint32_t num_warps = 0, num_running = 0;
  bool is_parked = false, was_parked = false;  ///< at griddepcontrol.launch_dependents
  std::shared_ptr<RaceCheck> races;            ///< null unless options().checks_races
  uint64_t num_mbarrier_changes = 0;
};

/// A wait for an mbarrier gives up once, and again when an mbarrier has changed since.
inline bool may_give_up(const Warp &warp) {
  return warp.gave_up_at != warp.block->cluster->num_mbarrier_changes;
}

inline RaceCheck *races_of(const Warp &warp) {
  return warp.block->cluster->races.get();
}

/// Runs a launch to its end, and those that begin before it has ended; throws Fault.
void run_grid(const Grid &);

}  // namespace softgpu
