// Worker pool: OS threads that run clusters.  Exists until the last context is destroyed.
#pragma once

#include <cstdint>
#include <functional>

namespace mp::host::engine {

struct Clusters {
  int64_t count;
  /// Runs on each OS thread before its first cluster.  A failure on the calling thread fails the
  /// launch before any cluster runs; on another thread, that thread runs no clusters.
  std::function<void()> prepare;
  std::function<void(int64_t)> run;
};

/// Returns the value of MP_HOST_THREADS, by default the number of processors.
int max_workers();

/// Calls run(i) for every i in [0, count) and returns when all calls have finished.  Uses up to
/// `max_workers` OS threads, including the caller, or fewer if the system cannot create them.
/// Concurrent launches run one after the other.  Throws the first exception of a cluster; no
/// cluster is started after it.
void run_on_workers(const Clusters &clusters, int max_workers);

/// Ends the pool's threads and frees the caches of all threads, after the launch in progress.
void release_workers();

/// Memory that an OS thread caches from launch to launch.
class ThreadCache {
 public:
  /// @param free  frees the memory; called on any thread, but never during a launch
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
