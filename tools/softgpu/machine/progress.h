// Whether the workers that run grids get on, and why they stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

namespace softgpu {

/// All functions may be called by several threads.
class Progress {
 public:
  explicit Progress(int num_workers) : stuck_at_(static_cast<size_t>(num_workers), 0) {}

  enum class State : uint8_t { kRuns, kFailed, kDeadlocked, kTooLong };
  State state() const { return state_; }
  /// Stops all of it, unless it has been stopped already.
  void stop(State);
  /// The same, with the exception that is being handled.
  void fail();
  void rethrow() const;

  // Whether a worker is stuck depends on all of them, since blocks may wait for what others write to global memory.

  /// Counts what has happened; a look at it before a round that got nowhere goes with are_all_stuck.
  uint64_t epoch() const { return epoch_; }
  /// A worker got on.
  void note() { epoch_++; }
  /// All that the worker began at this epoch did not get on; true if that is so of every worker: nothing ever will.
  bool are_all_stuck(int worker, uint64_t epoch);
  /// A worker has nothing left to do.
  void note_end(int worker);

 private:
  std::atomic<uint64_t> epoch_{1};
  std::atomic<State> state_{State::kRuns};

  std::mutex mutex_;  // of what follows
  std::exception_ptr failure_;
  std::vector<uint64_t> stuck_at_;  ///< the epoch, of each worker
};

}  // namespace softgpu
