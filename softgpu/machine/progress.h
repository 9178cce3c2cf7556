// Progress of the workers that run grids, and the reason for stopping them.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

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

}  // namespace softgpu
