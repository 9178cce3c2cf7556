// A thread of the host that runs warps.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "tools/softgpu/machine/shared_memory.h"
#include "tools/softgpu/program/kernel_counters.h"

namespace softgpu {

struct Cluster;
struct Warp;

struct FreeMemory {
  void operator()(std::byte *p) const { std::free(p); }
};
/// Memory aligned to 64 bytes.
using AlignedBytes = std::unique_ptr<std::byte, FreeMemory>;

/// What one thread of the host needs to run clusters, kept from one launch to the next.
struct Worker {
  std::mt19937_64 random;

  // Memory of launches and blocks that have ended, for those to come.
  std::vector<std::unique_ptr<KernelCounters>> tallies;
  std::vector<AlignedBytes> register_files;
  size_t register_file_bytes = 0;  ///< of each of them
  std::vector<SharedMemory> shared_memories;
};

/// The threads of the host that run grids, which live as long as the process.  One grid at a time may use them.
class WorkerPool {
 public:
  static WorkerPool &get();

  /// That of the calling thread.
  Worker &own() { return *workers_[0]; }
  /// Calls f(i, worker) for i from 1 to `num_others`, each in a thread of its own.  f must not throw, and lives until
  /// wait() has returned.
  void start(int num_others, const std::function<void(int, Worker &)> &f);
  /// Until all have returned.
  void wait();

 private:
  WorkerPool();
  void loop(int index, Worker &, uint64_t seen);

  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_, done_;
  const std::function<void(int, Worker &)> *job_ = nullptr;
  int num_wanted_ = 0, num_busy_ = 0;
  uint64_t num_jobs_ = 0;
};

/// A random number less than n, 0 if n is 0, from the generator of the worker that runs the warp or cluster.
uint64_t random_below(Worker &, uint64_t n);
uint64_t random_below(Warp &, uint64_t n);
uint64_t random_below(Cluster &, uint64_t n);

}  // namespace softgpu
