// Grids that run at the same time: one, and those that begin before it has ended (machine/dependence.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/softgpu/machine/launch.h"
#include "tools/softgpu/machine/progress.h"

namespace softgpu {

/// All functions but the constructor may be called by several threads.
class DependentLaunches {
 public:
  DependentLaunches(const Grid &first, int num_workers);

  Progress &progress() { return progress_; }
  /// Those that have begun since a worker last asked; `num_seen` counts them.
  std::vector<std::shared_ptr<Launch>> begun_since(uint64_t *num_seen);
  /// Whether the last one has a dependent that has not begun.
  bool may_grow() const { return may_grow_; }
  /// Begins that dependent if every block allows it; false if it does not begin now.
  bool begin_dependent();
  /// No worker got on since this epoch: a parked cluster goes on, waits give up, or it is a deadlock.
  void resolve(uint64_t epoch);
  /// Whether all that is left at this epoch is that waits give up.
  bool is_last_resort(uint64_t epoch) const { return last_resort_ == epoch; }

 private:
  const int num_workers_;
  Progress progress_;
  std::mutex mutex_;  // of what follows
  /// In the order in which they began; the first ones are gone when they have ended.
  std::vector<std::shared_ptr<Launch>> launches_;
  std::atomic<uint64_t> num_begun_{1};
  std::atomic<bool> may_grow_;
  std::atomic<uint64_t> last_resort_{0};
};

/// What one worker does for a chain.
class Runner {
 public:
  Runner(DependentLaunches &, int index, Worker &);

  /// Until nothing is left to do, or it is stuck or has executed about so many instructions; false if there is more.
  bool run_for(uint64_t num_instructions);
  void run_to_end();

  const std::vector<std::unique_ptr<LaunchPartition>> &shares() const { return shares_; }

 private:
  enum class Round { kProgress, kStuck, kEnd };
  Round round();
  void join();
  bool run_a_share();
  bool unblock_a_share(uint64_t epoch);
  size_t choose_share();

  DependentLaunches &chain_;
  const int index_;
  Worker &worker_;
  std::vector<std::unique_ptr<LaunchPartition>>
      shares_;             ///< of grids that have not ended, oldest first
  uint64_t num_seen_ = 0;  ///< launches of the chain
  uint64_t num_rounds_ = 0, num_instructions_ = 0;
  uint64_t favourite_ = 0;  ///< with a seed: the number of the share that goes first
};

}  // namespace softgpu
