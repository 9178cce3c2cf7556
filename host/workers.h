// The OS threads that run clusters: a pool that lives until the last context is destroyed.
#pragma once

#include <cstdint>
#include <functional>

namespace mp::host::engine {

struct Clusters {
  int64_t count;
  /// What a thread does before its first cluster.  The caller's failure is that of the launch, before
  /// any cluster has run; another thread that fails runs none.
  std::function<void()> prepare;
  std::function<void(int64_t)> run;
};

/// Calls run(i) for every i in [0, count), on up to `max_workers` OS threads of which the caller is one;
/// returns when all have finished.  One launch at a time: concurrent callers queue.  Where the system has
/// fewer threads to give there are fewer.
/// Throws the first exception of a cluster, after which no further one is started.
void run_on_workers(const Clusters &clusters, int max_workers);

/// Ends the threads of the pool and frees what all others keep.  Waits for the launch in progress.
void release_workers();

/// Memory that an OS thread keeps from launch to launch.
class ThreadCache {
 public:
  /// @param free  frees the memory; called by any thread, but not during a launch
  explicit ThreadCache(std::function<void()> free);
  ~ThreadCache();
  ThreadCache(const ThreadCache &) = delete;
  ThreadCache &operator=(const ThreadCache &) = delete;

 private:
  friend void release_workers();

  std::function<void()> free_;
  ThreadCache *before_ = nullptr, *after_;
};

}  // namespace mp::host::engine
