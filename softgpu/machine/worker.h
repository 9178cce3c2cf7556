// Host thread that runs warps.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "softgpu/machine/shared_memory.h"
#include "softgpu/program/kernel_counters.h"

namespace softgpu {

struct Cluster;
struct Warp;

/// Memory aligned to 64 bytes.
using AlignedBytes = std::unique_ptr<std::byte, FreeMemory>;

/// State of a host thread that runs clusters, reused by later launches.
struct Worker {
  std::mt19937_64 random;

  // Memory of finished launches and blocks, for reuse.
  std::vector<std::unique_ptr<KernelCounters>> tallies;
  std::vector<AlignedBytes> register_files;
  size_t register_file_bytes = 0;  ///< size of each register file
  std::vector<SharedMemory> shared_memories;
};

/// Host threads that run grids, for the lifetime of the process.  Serves one grid at a time.
class WorkerPool {
 public:
  static WorkerPool &get();

  /// Returns the worker of the calling thread.
  Worker &own() { return *workers_[0]; }
  /// Calls f(i, worker) for i from 1 to `num_others`, each in a separate thread.  f must not throw
  /// and must live until wait() returns.
  void start(int num_others, const std::function<void(int, Worker &)> &f);
  /// Waits until all calls have returned.
  void wait();

 private:
  WorkerPool();
  void loop(int index, Worker &, uint64_t seen);

  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex mutex_;  // guards the following members
  std::condition_variable wake_, done_;
  const std::function<void(int, Worker &)> *job_ = nullptr;
  int num_wanted_ = 0, num_busy_ = 0;
  uint64_t num_jobs_ = 0;
};

/// Returns a random number less than n, or 0 if n is 0, from the generator of the worker that runs
/// the warp or cluster.
uint64_t random_below(Worker &, uint64_t n);
uint64_t random_below(Warp &, uint64_t n);
uint64_t random_below(Cluster &, uint64_t n);

}  // namespace softgpu
