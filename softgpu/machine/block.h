// Thread blocks, clusters and grids.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "softgpu/machine/async_copy.h"
#include "softgpu/machine/lanes.h"
#include "softgpu/machine/shared_memory.h"
#include "softgpu/machine/warp.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

// The sixteen barriers of a block, at which bar and barrier count threads.  A warp counts as 32
// threads if its lanes arrive together or if all its remaining lanes arrive: barriers operate on
// whole warps (PTX ISA, bar{.cta}).

struct NamedBarrier {
  /// Lanes that wait, or that have arrived without the other lanes of their warp.
  struct Arrival {
    Warp *warp;
    Lanes lanes;
    uint32_t num_counted;  ///< in threads
    const Instruction *at;
    bool waits;
  };
  uint32_t num_arrived = 0, num_expected = 0;  ///< in threads
  uint32_t num_true = 0, num_false = 0;        ///< in lanes, for bar.red
  std::vector<Arrival> arrivals;
  bool has_split_warps = false;  ///< lanes have arrived without the other lanes of their warp
};

/// Updates barriers after some lanes of a warp have exited: barriers at which the remaining lanes
/// have arrived do not wait for the exited lanes.
void count_exited_lanes(Warp &);
/// Updates barriers after a warp has exited: barriers of all threads of the block, and the cluster
/// barrier, do not wait for it.
void count_exited_warp(Warp &);

// mbarriers of a block whose initialization may be invisible to other blocks of the cluster, or to
// the async proxy.

/// User of an mbarrier: a thread, or an asynchronous copy.
enum class MbarrierUser : uint8_t { kThread, kBulkCopy };

/// List of these mbarriers.
class UnfencedMbarriers {
 public:
  /// @param time  SharedMemory::time()
  void initialise(uint32_t offset, int thread, uint32_t time) {
    forget(offset);
    list_.push_back({offset, thread, time, false});
  }
  void forget(uint32_t offset) {
    std::erase_if(list_, [&](const Entry &x) { return x.offset == offset; });
  }
  /// Makes initializations of these threads visible to all: fence.mbarrier_init or
  /// fence.proxy.async.
  void fence(int first_thread, Lanes lanes) {
    std::erase_if(list_, [&](const Entry &x) { return is_of(x, first_thread, lanes); });
  }
  /// Releases generic writes to the cluster: other threads see them, the async proxy does not.
  void release(int first_thread, Lanes lanes) {
    for (Entry &x : list_) x.is_released |= is_of(x, first_thread, lanes);
  }
  /// Returns the thread whose initialization of the mbarrier may be invisible to the user, or -1.
  int unfenced_thread(uint32_t offset, MbarrierUser user) const {
    for (const Entry &x : list_)
      if (x.offset == offset && !(x.is_released && user == MbarrierUser::kThread)) return x.thread;
    return -1;
  }
  /// Returns unfenced_thread for a copy that a thread of the block issues.
  /// @param fenced  time of the last proxy fence of that thread, which may follow a barrier
  int unfenced_thread_of_own(uint32_t offset, uint32_t fenced) const {
    for (const Entry &x : list_)
      if (x.offset == offset && fenced <= x.time) return x.thread;
    return -1;
  }

 private:
  struct Entry {
    uint32_t offset;
    int thread;
    uint32_t time;
    bool is_released;
  };
  static bool is_of(const Entry &x, int first_thread, Lanes lanes) {
    const int lane = x.thread - first_thread;
    return lane >= 0 && lane < kWarpSize && (lanes >> lane & 1) != 0;
  }

  std::vector<Entry> list_;
};

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
  /// Allocates the parameters.
  void allocate_parameters(size_t bytes) {
    constexpr size_t kAlignment = 128;
    storage.resize(bytes + kAlignment);
    parameters = storage.data() + (-reinterpret_cast<uint64_t>(storage.data()) & (kAlignment - 1));
  }
  /// Set if a dependent grid may begin before this grid has ended (machine/cluster.h): returns
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
