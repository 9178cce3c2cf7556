// State of a cluster: its threads, warps and blocks, and the barriers and collectives in progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace mp::host {

/// Call site in a kernel; every primitive takes it as a default argument.
using std::source_location;

}  // namespace mp::host

namespace mp::host::engine {

constexpr int kWarpSize = 32;
constexpr int kMaxThreads = 1024;  // per block
constexpr int kMaxWarps = kMaxThreads / kWarpSize;
constexpr int kMaxCluster = 8;                         // blocks; portable limit of sm_90
constexpr int kMaxClusterThreads = kMaxCluster * 384;  // blocks of three warpgroups
constexpr size_t kSmemBytes = 227 * 1024;              // per block on sm_90, the largest so far

struct Fiber;
struct Warp;
struct Block;
struct Cluster;
struct Barriers;
struct Warpgroups;
struct Text;
class Engine;
class SharedMemory;

/// Object of a blocked thread's wait; `describe` names missing arrivals in a deadlock report.
struct WaitsFor {
  const void *object = nullptr;
  Text (*describe)(const void *object) = nullptr;
};

struct alignas(64) Thread {
  Warp *warp;
  Block *block;
  Fiber *fiber;  ///< NULL until first run
  Engine *engine;
  int index;  ///< in the block
  int lane;
  int64_t mma_issued;    ///< mma_sync calls so far, see wmma.h
  const char *waits_in;  ///< primitive in which the thread is blocked, for reports
  source_location waits_at;
  WaitsFor waits_for;
};

/// A deferred warp-wide matrix multiply: the operands of each lane.
struct MmaSlot {
  float *d[kWarpSize];
  const float *a[kWarpSize];
  const float *b[kWarpSize];
  const float *c[kWarpSize];
  uint32_t arrived;    ///< lanes
  source_location at;  ///< call site of the first lane to arrive
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
  uint64_t value[kWarpSize];
  uint64_t result[kWarpSize];
  uint8_t source[kWarpSize];

  // Deferred matrix multiplies, executed in order.
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
  Barriers *barriers;      ///< mbarriers, see sm90_barrier.h
  Warpgroups *warpgroups;  ///< wgmma in progress, see sm90_wgmma.h

  // The block_sync in progress.
  int at_barrier;                       ///< threads that wait
  uint32_t barrier_waiting[kMaxWarps];  ///< lanes, by warp

  int num_warps() const { return num_threads / kWarpSize; }
};

/// Blocks that run concurrently and can access each other's shared memory.
struct Cluster {
  Block *blocks;
  int size;
  Warp *warps;
  int num_warps;
  int alive;  ///< threads that have not returned

  // The cluster_sync in progress.
  int at_sync;                                            ///< threads that wait
  uint32_t sync_waiting[kMaxClusterThreads / kWarpSize];  ///< lanes, by slot of the warp
};

}  // namespace mp::host::engine
