// The threads, warps and blocks of one cluster, and the collectives in which they wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <vector>

namespace mp::host {

/// The place of a call in a kernel, which every primitive takes as a default argument.
using std::source_location;

}  // namespace mp::host

namespace mp::host::engine {

constexpr int kWarpSize = 32;
constexpr int kMaxThreads = 1024;                   // of a block, and of a cluster
constexpr int kMaxWarps = kMaxThreads / kWarpSize;  // likewise
constexpr int kMaxCluster = 8;                      // blocks; the portable limit of sm_90
constexpr size_t kSmemBytes = 227 * 1024;  // what a block may use on sm_90, the largest so far

struct Fiber;
struct Warp;
struct Block;
struct Cluster;
struct Barriers;
struct AsyncProxy;
struct Warpgroups;
struct Text;
class Engine;
class SharedMemory;

/// What a blocked thread waits for, and how a deadlock's report describes what is missing there.
struct WaitsFor {
  const void *object = nullptr;
  Text (*describe)(const void *object) = nullptr;
};

/// A cp.async that has been started and not yet performed.
struct PendingCopy {
  void *dst;
  const void *src;
  int bytes;      ///< copied; the rest of the 16 is zeroed
  int64_t group;  ///< the commit it belongs to
};

struct alignas(64) Thread {
  Warp *warp;
  Block *block;
  Fiber *fiber;  ///< NULL until first run
  Engine *engine;
  int index;  ///< in the block
  int lane;
  bool may_use_gmem;     ///< false until wait_for_previous_kernel in a kernel that starts early
  int64_t mma_issued;    ///< mma_sync calls so far, see wmma.h
  int64_t copy_group;    ///< cp.async commits so far
  const char *waits_in;  ///< the primitive in which it is blocked, and its place, for reports
  source_location waits_at;
  WaitsFor waits_for;
  std::vector<PendingCopy> copies;
};

/// One deferred warp-wide matrix multiply: what each lane contributed.
struct MmaSlot {
  float *d[kWarpSize];
  const float *a[kWarpSize];
  const float *b[kWarpSize];
  const float *c[kWarpSize];
  uint32_t arrived;    ///< lanes
  source_location at;  ///< of the first lane to arrive
};
constexpr int kMmaSlots = 16;

struct Warp {
  Block *block;
  Thread *lanes;
  int index;       ///< in the block
  int slot;        ///< in the cluster
  uint32_t ready;  ///< lanes that can run now
  uint32_t alive;  ///< lanes that have not returned

  // The collective in progress.
  uint32_t arrived;  ///< lanes
  const char *collective;
  source_location collective_at;
  uint64_t value[kWarpSize];
  uint64_t result[kWarpSize];
  uint8_t source[kWarpSize];

  // Deferred matrix multiplies, performed in order.
  MmaSlot *mma;
  int64_t mma_done;
  uint32_t mma_waiting;  ///< lanes
};

struct Block {
  Cluster *cluster;
  int rank;  ///< in the cluster
  int64_t index;
  int64_t grid_size;
  int num_threads;
  int alive;  ///< threads that have not returned
  Warp *warps;
  SharedMemory *smem;
  void *dynamic_smem;
  Barriers *barriers;       ///< mbarriers and named barriers, see sm90_barrier.h
  AsyncProxy *async_proxy;  ///< TMA in progress, see sm90_tma.h
  Warpgroups *warpgroups;   ///< wgmma in progress, see sm90_wgmma.h

  // The block_sync in progress.
  int at_barrier;  ///< threads that wait
  source_location barrier_at;
  uint32_t barrier_waiting[kMaxWarps];  ///< lanes, by warp

  int num_warps() const { return num_threads / kWarpSize; }
};

/// The blocks that run together.
struct Cluster {
  Block *blocks;
  int size;
  Warp *warps;
  int num_warps;
  int alive;  ///< threads that have not returned
  int num_mbarriers;

  // The cluster_sync in progress.
  int at_sync;                         ///< threads that wait
  uint32_t sync_waiting[kMaxWarps];    ///< lanes, by slot of the warp
  source_location sync_at[kMaxWarps];  ///< of the first lane of the warp to arrive
};

}  // namespace mp::host::engine
