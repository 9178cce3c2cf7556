// Work of the devices, and the threads that do it: one of its own, and those of the program while they wait.
//
// A piece of work begins when those that come before it are done, and not at once: a program that does not wait where
// it must is to find old values.  Without a seed, work begins when somebody waits for it or asks whether it is done, or
// after SOFTGPU_DELAY, and of several pieces the one that was submitted last begins first.
//
// With a seed the program's own calls decide, and not the time that they take, so that the order repeats: a call that
// submits, waits or asks draws how many pieces are done before it returns, of all that could begin.  Streams have random
// priorities, from which the choice departs now and then.  What such a call draws runs in the other thread, and the call
// waits for it, though not for ever: a kernel or a function of the host may wait for what the program does next.  Only if
// the program calls nothing for a hundred times SOFTGPU_DELAY does work begin by itself, as the program may look for a
// result in mapped memory.
//
// One piece of work runs at a time: kernels of different devices never run side by side.  (A kernel itself uses all
// processors of the host.)  Only kernels that were launched to begin early run beside the one before
// (machine/dependence.h); they are done when all of them are.
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

#include "tools/softgpu/machine/block.h"

namespace softgpu::runtime {

using Clock = std::chrono::steady_clock;

struct Work {
  std::function<void()> run;  ///< may throw Fault; without this and a grid it is a mark in a stream
  /// Of a kernel: what runs; null if it cannot be launched.
  std::function<std::unique_ptr<Grid>()> make_grid;
  /// The kernel in whose grid it may begin, as soon as that allows it and all else that comes before is done.
  std::weak_ptr<Work> primary;
  int device = 0;
  uint64_t stream = 0;            ///< its number
  bool runs_after_fault = false;  ///< though the device has stopped
  bool calls_host = false;        ///< runs a function of the program

  // The rest is the scheduler's.
  uint64_t number = 0;         ///< in the order of submission
  uint64_t grid = 0;           ///< the same among kernels
  Clock::time_point earliest;  ///< without a seed: from then on it begins though nobody asks for it
  uint32_t num_before = 0;     ///< pieces that must be done first and are not
  std::vector<std::shared_ptr<Work>> before, after;
  bool is_demanded = false, is_done = false;
  bool has_begun = false;  ///< beside its primary
  Clock::time_point done_at;
};
using WorkPtr = std::shared_ptr<Work>;

class Scheduler {
 public:
  /// Null pointers in `before` are skipped.
  void submit(const WorkPtr &, const std::vector<WorkPtr> &before);
  /// With a seed: some of what may begin is done before the call that has submitted something returns.  The caller holds
  /// no lock.
  void run_some();
  /// Until all are done; null pointers are skipped.
  void wait(const std::vector<WorkPtr> &);
  void wait(const WorkPtr &work) { wait(std::vector{work}); }
  void wait_for_device(int device);
  /// Whether all are done; if not, they are to be done soon.
  bool poll(const std::vector<WorkPtr> &);
  bool poll(const WorkPtr &work) { return poll(std::vector{work}); }
  /// Whether it is done, without asking for it.
  bool is_done(const WorkPtr &);
  /// When it was done.
  Clock::time_point time_of(const WorkPtr &);
  /// Lets the thread end what it is doing, within some seconds; the rest is never done.
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
  std::vector<WorkPtr> demanded();
  void demand(const WorkPtr &);
  void finish(Work &);
  std::mutex mutex_;
  std::condition_variable wake_, progress_;
  std::map<uint64_t, WorkPtr> pending_;  ///< submitted and not done
  std::vector<WorkPtr> ready_;           ///< those of them that nothing comes before
  std::vector<WorkPtr> begun_;           ///< beside the piece that runs, in this order
  WorkPtr handed_over_;                  ///< with a seed: what the thread runs next
  Clock::time_point last_call_;          ///< with a seed: when the program was here last
  std::mt19937_64 random_;
  uint64_t num_submitted_ = 0, num_grids_ = 0;
  std::thread::id thread_;
  bool is_running_ = false, is_stopping_ = false;
};

/// Of the process; never destroyed.
Scheduler &scheduler();

}  // namespace softgpu::runtime
