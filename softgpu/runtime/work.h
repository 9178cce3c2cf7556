// Scheduler of device work: kernels, copies and host functions of all streams.  Work runs in the
// scheduler's thread or in program threads while they wait.
//
// Work begins after its predecessors, as late as allowed, so that a program with missing
// synchronization reads stale values.  Without a seed, work begins when a call waits for it or
// polls it, or after SOFTGPU_DELAY.  The work that was submitted last begins first.
//
// With a seed, the calls of the program determine the order, not their timing, so that runs repeat.
// A call that submits, waits or polls selects at random how much of the ready work runs before it
// returns.  Streams have random priorities, which some choices ignore.  Selected work runs in the
// other thread.  The call waits for it with a time limit, because a kernel or a host function may
// wait for a later action of the program.  Work begins without a call only if the program has made
// no call for 100 times SOFTGPU_DELAY: it may be polling mapped memory.
//
// One kernel, copy or host function runs at a time, even on different devices; a kernel uses all
// processors of the host.  The exception is programmatic dependent launch: such a kernel overlaps
// with its predecessor (machine/cluster.h), and both are done when all kernels of the group have
// ended.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "softgpu/machine/block.h"

namespace softgpu::runtime {

using Clock = std::chrono::steady_clock;

struct Work {
  std::function<void()> run;  ///< may throw Fault; a marker has neither `run` nor a grid
  /// Creates the grid of a kernel; null if it cannot be launched.
  std::function<std::unique_ptr<Grid>()> make_grid;
  /// Kernel with which this kernel may overlap.  It begins when the primary allows it and all other
  /// predecessors are done.
  std::weak_ptr<Work> primary;
  int device = 0;
  uint64_t stream = 0;            ///< stream number
  bool runs_after_fault = false;  ///< even if a fault has stopped the device
  bool calls_host = false;        ///< runs a host function of the program

  // The following fields belong to the scheduler.
  uint64_t number = 0;         ///< order of submission
  uint64_t grid = 0;           ///< order of submission among kernels
  Clock::time_point earliest;  ///< start time if no call waits for it; unused if seeded
  uint32_t num_before = 0;     ///< pending predecessors
  std::vector<std::shared_ptr<Work>> before, after;
  bool is_demanded = false, is_done = false;
  bool has_begun = false;  ///< overlaps with its primary
  Clock::time_point done_at;
};
using WorkPtr = std::shared_ptr<Work>;

class Scheduler {
 public:
  /// Submits work; null pointers in `before` are skipped.
  void submit(const WorkPtr &, const std::vector<WorkPtr> &before);
  /// Runs some of the ready work, if seeded, before the submitting call returns.  The caller must
  /// not hold a lock.
  void run_some();
  /// Waits until all work is done; null pointers are skipped.
  void wait(const std::vector<WorkPtr> &);
  void wait(const WorkPtr &work) { wait(std::vector{work}); }
  void wait_for_device(int device);
  /// Returns whether all work is done; if not, requests that it runs soon.
  bool poll(const std::vector<WorkPtr> &);
  bool poll(const WorkPtr &work) { return poll(std::vector{work}); }
  /// Returns whether the work is done, without requesting it.
  bool is_done(const WorkPtr &);
  /// Returns the completion time.
  Clock::time_point time_of(const WorkPtr &);
  /// Stops the thread after the running work, within a few seconds; pending work never runs.
  void stop();

 private:
  void loop();
  void run(std::unique_lock<std::mutex> &, const WorkPtr &);
  void run_drawn(std::unique_lock<std::mutex> &, uint64_t odds);
  void perform(const WorkPtr &);
  void attempt(const WorkPtr &);
  std::unique_ptr<Grid> make_grid(const WorkPtr &);
  WorkPtr dependent_of(const Work &);
  std::unique_ptr<Grid> begin_dependent(const WorkPtr &);
  void run_until_done(std::unique_lock<std::mutex> &, const std::vector<WorkPtr> &);
  WorkPtr choose();
  WorkPtr choose_for_thread();
  WorkPtr choose_randomly(const std::vector<WorkPtr> &candidates);
  static void demand(std::vector<WorkPtr>);
  void finish(Work &);
  std::mutex mutex_;
  std::condition_variable wake_, progress_;
  std::map<uint64_t, WorkPtr> pending_;  ///< submitted and not done
  std::vector<WorkPtr> ready_;           ///< pending work without pending predecessors
  std::vector<WorkPtr> begun_;   ///< dependent kernels that overlap with the running work, in order
  WorkPtr handed_over_;          ///< if seeded: next work of the thread
  Clock::time_point last_call_;  ///< if seeded: time of the last call of the program
  std::mt19937_64 random_;
  uint64_t num_submitted_ = 0, num_grids_ = 0;
  std::thread::id thread_;
  bool is_running_ = false, is_stopping_ = false;
};

/// Returns the scheduler of the process, which is never destroyed.
Scheduler &scheduler();

}  // namespace softgpu::runtime
