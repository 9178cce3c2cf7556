#include <algorithm>
#include <cstdio>

#include "softgpu/machine/block.h"
#include "softgpu/machine/faults.h"
#include "softgpu/options.h"
#include "softgpu/runtime/device.h"
#include "softgpu/runtime/work.h"

namespace softgpu::runtime {

namespace {

/// Odds in seeded runs: one in kEager calls that submit or wait, and one in kAsked calls that poll,
/// runs work first.
constexpr uint64_t kEager = 8, kAsked = 2;

/// Odds in seeded runs: one in kFree choices ignores priorities.  A stream that others always
/// overtake detects missing synchronization in long chains of another stream.
constexpr uint64_t kFree = 4;

/// Maximum time that a call waits for work that it selected; that work may wait for the program in
/// turn.
constexpr std::chrono::seconds kPatience{1};

/// Factor in seeded runs: work that no call waits for begins after kLonger times SOFTGPU_DELAY,
/// longer than the program should need between two calls.
constexpr int kLonger = 100;

/// Odds in seeded runs: one in kLate kernels that may begin early does not.
constexpr int kLate = 4;

/// Interval at which the thread checks for work that is due.
constexpr std::chrono::milliseconds kDoze{2};

/// Maximum time that process exit waits for the running kernel.
constexpr std::chrono::seconds kLongestEnd{10};

/// Returns a pseudorandom number: the last step of splitmix64.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

bool are_done(const std::vector<WorkPtr> &all) {
  return std::ranges::all_of(all, [](const WorkPtr &work) { return !work || work->is_done; });
}

/// Returns the error code that the host program receives after a fault.
cudaError_t error_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kMisaligned:
      return cudaErrorMisalignedAddress;
    case FaultKind::kTrap:
      return cudaErrorLaunchFailure;
    case FaultKind::kEndless:
      return cudaErrorLaunchTimeout;
    default:
      return cudaErrorIllegalAddress;
  }
}

}  // namespace

Scheduler &scheduler() {
  static Scheduler *const the_scheduler = new Scheduler;
  return *the_scheduler;
}

void Scheduler::submit(const WorkPtr &work, const std::vector<WorkPtr> &before) {
  const std::lock_guard lock(mutex_);
  if (thread_ == std::thread::id()) {
    random_.seed(options().seed);
    std::thread thread([this] { loop(); });
    thread_ = thread.get_id();
    thread.detach();
  }
  work->number = num_submitted_++;
  if (work->make_grid) work->grid = ++num_grids_;
  last_call_ = Clock::now();
  work->earliest = last_call_ + settings().delay;
  for (const WorkPtr &other : before) {
    if (!other || other->is_done) continue;
    work->before.push_back(other);
    other->after.push_back(work);
  }
  work->num_before = static_cast<uint32_t>(work->before.size());
  pending_.emplace(work->number, work);
  if (work->num_before == 0) ready_.push_back(work);
  if (work->earliest <= Clock::now()) wake_.notify_one();
}

void Scheduler::run_some() {
  if (!options().is_random()) return;
  std::unique_lock lock(mutex_);
  run_drawn(lock, kEager);
}

/// Runs work while a random draw with probability 1/odds succeeds.
void Scheduler::run_drawn(std::unique_lock<std::mutex> &lock, uint64_t odds) {
  last_call_ = Clock::now();
  while (!is_running_ && !handed_over_ && !ready_.empty() && random_() % odds == 0) {
    const WorkPtr drawn = choose_randomly(ready_);
    handed_over_ = drawn;
    wake_.notify_one();
    progress_.wait_for(lock, kPatience, [&] { return drawn->is_done; });
    last_call_ = Clock::now();
  }
}

/// Marks work and all its predecessors as demanded; null pointers are skipped.
void Scheduler::demand(std::vector<WorkPtr> open) {
  while (!open.empty()) {
    const WorkPtr next = std::move(open.back());
    open.pop_back();
    if (!next || next->is_done || next->is_demanded) continue;
    next->is_demanded = true;
    open.insert(open.end(), next->before.begin(), next->before.end());
  }
}

/// Runs work until all of `all` is done.  Kernels run in the calling thread, because switching
/// threads takes longer than most kernels.  Host functions must not run in the thread that waits
/// for them.
void Scheduler::run_until_done(std::unique_lock<std::mutex> &lock,
                               const std::vector<WorkPtr> &all) {
  if (options().is_random()) run_drawn(lock, kEager);
  while (!are_done(all)) {
    const WorkPtr chosen = is_running_ || handed_over_ ? nullptr : choose();
    if (chosen && !chosen->calls_host) {
      run(lock, chosen);
      continue;
    }
    if (chosen && options().is_random()) handed_over_ = chosen;
    if (chosen) wake_.notify_one();
    progress_.wait(lock);
  }
  last_call_ = Clock::now();
}

void Scheduler::wait(const std::vector<WorkPtr> &all) {
  std::unique_lock lock(mutex_);
  demand(all);
  run_until_done(lock, all);
}

void Scheduler::wait_for_device(int device) {
  std::unique_lock lock(mutex_);
  std::vector<WorkPtr> all;
  for (const auto &[number, work] : pending_)
    if (work->device == device) all.push_back(work);
  demand(all);
  run_until_done(lock, all);
}

bool Scheduler::poll(const std::vector<WorkPtr> &all) {
  std::unique_lock lock(mutex_);
  if (are_done(all)) return true;
  demand(all);
  if (options().is_random()) {
    run_drawn(lock, kAsked);
  } else {
    wake_.notify_one();
  }
  return are_done(all);
}

bool Scheduler::is_done(const WorkPtr &work) {
  const std::lock_guard lock(mutex_);
  return !work || work->is_done;
}

Clock::time_point Scheduler::time_of(const WorkPtr &work) {
  const std::lock_guard lock(mutex_);
  return work->done_at;
}

void Scheduler::stop() {
  std::unique_lock lock(mutex_);
  is_stopping_ = true;
  wake_.notify_one();
  const bool is_own_thread = std::this_thread::get_id() == thread_;  // a host function called exit
  if (!is_own_thread) progress_.wait_for(lock, kLongestEnd, [&] { return !is_running_; });
}

/// Returns the next work to run, or null if none is due.
WorkPtr Scheduler::choose() {
  const bool is_random = options().is_random();
  const Clock::time_point now = Clock::now();
  std::vector<WorkPtr> candidates;
  for (const WorkPtr &work : ready_)
    if (work->is_demanded || (!is_random && work->earliest <= now)) candidates.push_back(work);
  if (candidates.empty()) return nullptr;
  if (is_random) return choose_randomly(candidates);
  return *std::ranges::max_element(candidates, {}, [](const WorkPtr &w) { return w->number; });
}

/// Returns the next work for the scheduler's thread, or null.
WorkPtr Scheduler::choose_for_thread() {
  if (!options().is_random()) return choose();
  if (handed_over_) return handed_over_;
  const bool is_left_alone = Clock::now() > last_call_ + kLonger * settings().delay;
  return is_left_alone && !ready_.empty() ? ready_.front() : nullptr;
}

WorkPtr Scheduler::choose_randomly(const std::vector<WorkPtr> &candidates) {
  if (random_() % kFree == 0) return candidates[random_() % candidates.size()];
  return *std::ranges::max_element(
      candidates, {}, [](const WorkPtr &work) { return mix(options().seed ^ mix(work->stream)); });
}

void Scheduler::finish(Work &work) {
  work.is_done = true;
  work.run = nullptr;
  work.make_grid = nullptr;
  work.done_at = Clock::now();
  work.before.clear();
  for (const WorkPtr &next : work.after)
    if (--next->num_before == 0 && !next->has_begun) ready_.push_back(next);
  work.after.clear();
  pending_.erase(work.number);
}

/// Returns the kernel that may begin while `primary` runs, or null.
WorkPtr Scheduler::dependent_of(const Work &primary) {
  for (const WorkPtr &next : primary.after)
    if (next->primary.lock().get() == &primary && next->num_before == 1) return next;
  return nullptr;
}

/// Returns the grid of a kernel, connected to its dependent kernel if that is already submitted.
std::unique_ptr<Grid> Scheduler::make_grid(const WorkPtr &work) {
  std::unique_ptr<Grid> grid = work->make_grid();
  if (!grid) return nullptr;
  grid->id = work->grid;
  const std::lock_guard lock(mutex_);
  if (!dependent_of(*work)) return grid;
  if (options().is_random() && random_() % kLate == 0) return grid;
  grid->begin_dependent = [this, work] { return begin_dependent(work); };
  return grid;
}

std::unique_ptr<Grid> Scheduler::begin_dependent(const WorkPtr &primary) {
  WorkPtr dependent;
  {
    const std::lock_guard lock(mutex_);
    dependent = dependent_of(*primary);
    if (!dependent) return nullptr;
    dependent->has_begun = true;
    begun_.push_back(dependent);
  }
  return make_grid(dependent);
}

/// Runs work.  Converts internal errors of the device to faults.
void Scheduler::attempt(const WorkPtr &work) {
  try {
    if (work->run) work->run();
    if (!work->make_grid) return;
    const std::unique_ptr<Grid> grid = make_grid(work);
    if (grid) run_grid(*grid);
  } catch (const Fault &) {
    throw;
  } catch (const std::exception &error) {
    fault(std::string("internal error of the device: ") + error.what());
  }
}

void Scheduler::perform(const WorkPtr &work) {
  if (sticky_error(work->device) != cudaSuccess && !work->runs_after_fault) return;
  try {
    attempt(work);
  } catch (const Fault &fault) {
    std::fprintf(stderr, "softgpu: FAULT: %s\n", fault.what());
    stop_device(work->device, error_of(fault.kind));
  }
}

/// Runs work that has no pending predecessor.  No other work runs meanwhile.
void Scheduler::run(std::unique_lock<std::mutex> &lock, const WorkPtr &chosen) {
  const WorkPtr work = chosen;  // a copy: `chosen` may refer to handed_over_
  std::erase(ready_, work);
  handed_over_ = nullptr;
  is_running_ = true;
  lock.unlock();
  perform(work);
  lock.lock();
  is_running_ = false;
  finish(*work);
  for (const WorkPtr &dependent : begun_) finish(*dependent);
  begun_.clear();
  progress_.notify_all();
}

void Scheduler::loop() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    const WorkPtr chosen = is_running_ ? nullptr : choose_for_thread();
    if (chosen) {
      run(lock, chosen);
    } else {
      wake_.wait_for(lock, kDoze);
    }
  }
}

}  // namespace softgpu::runtime
