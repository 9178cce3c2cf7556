#include "host/workers.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/lifetime.h"

namespace mp::host::engine {

namespace {

/// Clusters of a launch, handed out to threads one at a time and in order.
class Job {
 public:
  explicit Job(const Clusters &clusters) : clusters_(clusters) {}

  void prepare() { clusters_.prepare(); }
  void work() noexcept {
    for (;;) {
      const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= clusters_.count) return;
      try {
        clusters_.run(index);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!thrown_) thrown_ = std::current_exception();
        next_ = clusters_.count;
      }
    }
  }
  /// Runs clusters on an optional thread, unless it fails to prepare.
  void help() noexcept {
    if (next_.load(std::memory_order_relaxed) >= clusters_.count) return;
    try {
      prepare();
    } catch (const std::exception &) {
      return;
    }
    work();
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const Clusters &clusters_;
  std::atomic<int64_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr thrown_;
};

class Workers {
 public:
  /// Starts up to `count` threads: fewer if the system cannot create them.
  explicit Workers(int count) {
    threads_.reserve(static_cast<size_t>(count));
    // Signals that end a process are for the application's threads.  Workers inherit the mask.
    sigset_t blocked, before;
    sigemptyset(&blocked);
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) sigaddset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    try {
      for (int i = 0; i < count; i++) threads_.emplace_back([this, i] { serve(i); });
    } catch (const std::exception &) {  // no thread, or no memory for it
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    wake_.notify_all();
    for (std::thread &thread : threads_) thread.join();
  }

  /// Runs the job on up to `helpers` pool threads and on the calling thread, to completion.
  void run(Job &job, int helpers) {
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      helpers_ = busy_ = std::min(helpers, static_cast<int>(threads_.size()));
      generation_++;
    }
    wake_.notify_all();
    job.work();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void serve(int index) {
    uint64_t seen = 0;
    for (;;) {
      Job *job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return quit_ || (generation_ != seen && index < helpers_); });
        if (quit_) return;
        seen = generation_;
        job = job_;
      }
      job->help();
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Job *job_ = nullptr;
  int helpers_ = 0;
  int busy_ = 0;
  uint64_t generation_ = 0;
  bool quit_ = false;
};

/// Guards the list of ThreadCache objects.  It is locked while a job runs, so its fork handler is
/// registered first: fork calls prepare handlers in reverse order.
std::mutex kept_mutex;
const ForkGuard<kept_mutex> nothing_kept_in_a_child;
ThreadCache *kept = nullptr;

std::mutex one_job_at_a_time;
const ForkGuard<one_job_at_a_time> no_job_in_a_child;

/// Owner of the workers, from a launch to release_workers().  The forked child of a process that
/// has workers runs launches on the calling thread.  The fork handler is registered at load time: a
/// fork that waits for the job in which the workers are created would not call a handler registered
/// with them.
struct WorkersOfProcess {
  /// Ends the workers at exit.  Later or concurrent launches run on their calling thread only.
  ~WorkersOfProcess() {
    const std::lock_guard lock(one_job_at_a_time);
    can_have_workers = false;
    stop();
  }
  static Workers *get() {
    static const WorkersOfProcess made;
    if (all == nullptr && can_have_workers && has_fork_handler)
      all = new Workers(max_workers() - 1);
    return all;
  }
  static void stop() { delete std::exchange(all, nullptr); }

 private:
  static inline constinit Workers *all = nullptr;
  static inline constinit bool can_have_workers = true;
  /// Drops the parent's workers in a child, which does not create any if the parent had some.
  static inline const bool has_fork_handler = pthread_atfork(nullptr, nullptr, [] {
                                                if (all != nullptr) can_have_workers = false;
                                                all = nullptr;
                                              }) == 0;
};

}  // namespace

int max_workers() {
  static constinit EnvironmentVariable variable("MP_HOST_THREADS",
                                                "must be an integer from 1 to 256");
  return lazy_init([] {
    constexpr int64_t kMax = 256;
    const int64_t processors = std::thread::hardware_concurrency();
    return static_cast<int>(
        variable.integer(1, kMax).value_or(std::clamp<int64_t>(processors, 1, kMax)));
  });
}

void run_on_workers(const Clusters &clusters, int max_workers) {
  const std::lock_guard lock(one_job_at_a_time);
  Job job(clusters);
  job.prepare();
  const int64_t wanted = std::min<int64_t>(max_workers, clusters.count);
  Workers *const workers = WorkersOfProcess::get();
  if (wanted > 1 && workers != nullptr)
    workers->run(job, static_cast<int>(wanted) - 1);
  else
    job.work();
  job.rethrow();
}

void release_workers() {
  const std::lock_guard job(one_job_at_a_time);
  WorkersOfProcess::stop();
  const std::lock_guard lock(kept_mutex);
  for (const ThreadCache *one = kept; one != nullptr; one = one->after_) one->free_();
}

ThreadCache::ThreadCache(std::function<void()> free) : free_(std::move(free)) {
  const std::lock_guard lock(kept_mutex);
  after_ = std::exchange(kept, this);
  if (after_ != nullptr) after_->before_ = this;
}

ThreadCache::~ThreadCache() {
  const std::lock_guard lock(kept_mutex);
  (before_ != nullptr ? before_->after_ : kept) = after_;
  if (after_ != nullptr) after_->before_ = before_;
}

}  // namespace mp::host::engine
