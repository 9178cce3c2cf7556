// Dependent launches: a grid, and the grids that begin before it has ended (machine/dependence.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/machine/launch.h"
#include "softgpu/machine/progress.h"

namespace softgpu {

/// Group of grids that overlap.  Thread-safe, except for the constructor.
class DependentLaunches {
 public:
  DependentLaunches(const Grid &first, int num_workers);
  ~DependentLaunches();

  Progress &progress() { return progress_; }
  /// Returns the launches that have begun since launch number `*num_seen`, and updates the number.
  std::vector<std::shared_ptr<Launch>> begun_since(uint64_t *num_seen);
  /// Returns whether the last launch has a dependent launch that has not begun.
  bool may_grow() const { return may_grow_; }
  /// Begins the dependent launch if every block allows it.  Returns whether it has begun.
  bool begin_dependent();
  /// Called if no worker has made progress since this epoch: releases a parked cluster, lets
  /// mbarrier waits return false, or reports a deadlock.
  void resolve(uint64_t epoch);
  /// Returns whether mbarrier waits must return false, because nothing else can make progress.
  bool is_last_resort(uint64_t epoch) const { return last_resort_ == epoch; }

 private:
  const int num_workers_;
  const std::unique_ptr<GlobalRaces> races_;  ///< null unless options().checks_races
  Progress progress_;
  std::mutex mutex_;  // guards the following members
  /// Sorted by start.  Launches at the front are removed when they have ended.
  std::vector<std::shared_ptr<Launch>> launches_;
  std::atomic<uint64_t> num_begun_{1};
  std::atomic<bool> may_grow_;
  std::atomic<uint64_t> last_resort_{0};
};

/// Work of one worker for a group of dependent launches.
class Runner {
 public:
  Runner(DependentLaunches &, int index, Worker &);

  /// Runs until all work is done, no progress is possible, or about `num_instructions` have been
  /// executed.  Returns false if work remains.
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
  /// Partitions of grids that have not ended, oldest first.
  std::vector<std::unique_ptr<LaunchPartition>> shares_;
  uint64_t num_seen_ = 0;  ///< number of launches that this worker has joined
  uint64_t num_rounds_ = 0, num_instructions_ = 0;
  uint64_t favourite_ = 0;  ///< if seeded: selects the partition that runs first
};

}  // namespace softgpu
