#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tools/softgpu/machine/block.h"
#include "tools/softgpu/machine/faults.h"
#include "tools/softgpu/options.h"
#include "tools/softgpu/runtime/errors.h"
#include "tools/softgpu/runtime/settings.h"
#include "tools/softgpu/runtime/work.h"

namespace softgpu::runtime {

namespace {

/// With a seed, one in so many pieces of work begins at once, and one in so many choices is not by priority: a stream
/// that is always overtaken finds what long chains of work in another one lack.
constexpr int kEager = 8, kFree = 4;

/// With a seed, one in so many kernels that may begin early does not.
constexpr int kLate = 4;

/// The thread looks so often for work whose time has come.
constexpr std::chrono::milliseconds kDoze{2};

/// A process that ends waits so long for the kernel that runs.
constexpr std::chrono::seconds kLongestEnd{10};

/// A number that looks random: the last step of splitmix64.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

}  // namespace

Scheduler &scheduler() {
  static Scheduler *const the_scheduler = new Scheduler;
  return *the_scheduler;
}

Clock::time_point Scheduler::start_of_new_work() {
  const bool is_eager = options().is_random() && random_() % kEager == 0;
  return is_eager ? Clock::now() : Clock::now() + settings().delay;
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
  work->earliest = start_of_new_work();
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

/// Marks the work and all that comes before it.
void Scheduler::demand(const WorkPtr &work) {
  std::vector<Work *> open{work.get()};
  while (!open.empty()) {
    Work &next = *open.back();
    open.pop_back();
    if (next.is_done || next.is_demanded) continue;
    next.is_demanded = true;
    for (const WorkPtr &other : next.before) open.push_back(other.get());
  }
}

/// Runs work in the calling thread, since switching to the other one and back takes longer than most kernels, until
/// all of these are done.  Functions of the host have to run in another thread than that which waits for them.
void Scheduler::run_until_done(std::unique_lock<std::mutex> &lock,
                               const std::vector<WorkPtr> &all) {
  const auto is_done = [](const WorkPtr &work) { return work->is_done; };
  while (!std::ranges::all_of(all, is_done)) {
    const std::optional<size_t> chosen = is_running_ ? std::nullopt : choose();
    if (chosen && !ready_[*chosen]->calls_host) {
      run(lock, *chosen);
      continue;
    }
    if (chosen) wake_.notify_one();
    progress_.wait(lock);
  }
}

void Scheduler::wait(const WorkPtr &work) {
  if (!work) return;
  std::unique_lock lock(mutex_);
  demand(work);
  run_until_done(lock, {work});
}

void Scheduler::wait_for_device(int device) {
  std::unique_lock lock(mutex_);
  std::vector<WorkPtr> all;
  for (const auto &[number, work] : pending_)
    if (work->device == device) all.push_back(work);
  for (const WorkPtr &work : all) demand(work);
  run_until_done(lock, all);
}

bool Scheduler::poll(const WorkPtr &work) {
  if (!work) return true;
  const std::lock_guard lock(mutex_);
  if (!work->is_done) {
    demand(work);
    wake_.notify_one();
  }
  return work->is_done;
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
  const bool is_own_thread = std::this_thread::get_id() == thread_;  // a host function calls exit
  if (!is_own_thread) progress_.wait_for(lock, kLongestEnd, [&] { return !is_running_; });
}

/// The index in ready_ of what runs next; nothing if all of it may still wait.
std::optional<size_t> Scheduler::choose() {
  const Clock::time_point now = Clock::now();
  std::vector<size_t> candidates;
  for (size_t i = 0; i < ready_.size(); i++)
    if (ready_[i]->is_demanded || ready_[i]->earliest <= now) candidates.push_back(i);
  if (candidates.empty()) return std::nullopt;
  if (options().is_random()) return choose_randomly(candidates);
  return *std::ranges::max_element(candidates, {}, [&](size_t i) { return ready_[i]->number; });
}

size_t Scheduler::choose_randomly(const std::vector<size_t> &candidates) {
  if (random_() % kFree == 0) return candidates[random_() % candidates.size()];
  return *std::ranges::max_element(
      candidates, {}, [&](size_t i) { return mix(options().seed ^ mix(ready_[i]->stream)); });
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

/// The kernel that may begin beside this one, or null.
WorkPtr Scheduler::dependent_of(const Work &primary) {
  for (const WorkPtr &next : primary.after)
    if (next->primary.lock().get() == &primary && next->num_before == 1) return next;
  return nullptr;
}

/// The grid of a kernel, with its dependent if there is one yet.
std::unique_ptr<Grid> Scheduler::make_grid(const WorkPtr &work) {
  std::unique_ptr<Grid> grid = work->make_grid();
  const std::lock_guard lock(mutex_);
  if (!grid || !dependent_of(*work)) return grid;
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

void Scheduler::perform(const WorkPtr &work) {
  if (sticky_error(work->device) != cudaSuccess && !work->runs_after_fault) return;
  try {
    if (work->run) work->run();
    if (!work->make_grid) return;
    const std::unique_ptr<Grid> grid = make_grid(work);
    if (grid) run_grid(*grid);
  } catch (const Fault &fault) {
    std::fprintf(stderr, "softgpu: FAULT: %s\n", fault.what());
    stop_device(work->device, cudaErrorIllegalAddress);
  }
}

/// Runs a piece of work that nothing comes before.  No other is running.
void Scheduler::run(std::unique_lock<std::mutex> &lock, size_t chosen) {
  const WorkPtr work = ready_[chosen];
  ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(chosen));
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
    const std::optional<size_t> chosen = is_running_ ? std::nullopt : choose();
    if (chosen) {
      run(lock, *chosen);
    } else {
      wake_.wait_for(lock, kDoze);
    }
  }
}

}  // namespace softgpu::runtime
