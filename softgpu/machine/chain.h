// Dependent launches: a grid, and the grids that begin before it has ended (machine/cluster.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "softgpu/machine/launch.h"

namespace softgpu {

/// Progress and state of all workers of a launch.  Thread-safe.
class Progress {
 public:
  explicit Progress(int num_workers) : stuck_at_(static_cast<size_t>(num_workers), 0) {}

  enum class State : uint8_t { kRuns, kFailed, kDeadlocked, kTooLong };
  State state() const { return state_; }
  /// Stops all workers, unless they are already stopped.
  void stop(State);
  /// Stops all workers with the exception that is being handled.
  void fail();
  void rethrow() const;

  // A worker is stuck only if all are: blocks may wait for writes of other blocks to global memory.

  /// Returns the progress counter.  Read it before a round and, if the round made no progress, pass
  /// it to are_all_stuck.
  uint64_t epoch() const { return epoch_; }
  /// Records progress.
  void note() { epoch_++; }
  /// Records that a worker has made no progress since this epoch.  Returns whether this applies to
  /// all workers, so that none will ever make progress.
  bool are_all_stuck(int worker, uint64_t epoch);
  /// Records that a worker has no work left.
  void note_end(int worker);

 private:
  std::atomic<uint64_t> epoch_{1};
  std::atomic<State> state_{State::kRuns};

  std::mutex mutex_;  // guards the following members
  std::exception_ptr failure_;
  std::vector<uint64_t> stuck_at_;  ///< epoch of each worker
};

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
