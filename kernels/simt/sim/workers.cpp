#include "kernels/simt/sim/workers.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/fork.h"
#include "kernels/simt/sim/engine.h"

namespace mp::host::engine {

namespace {

/// Clusters are handed out in order, one at a time.
class Job {
 public:
  Job(int64_t count, const std::function<void(int64_t)> &run_cluster)
      : count_(count), run_cluster_(run_cluster) {}

  void work() {
    for (;;) {
      const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= count_) return;
      try {
        run_cluster_(index);
      } catch (const std::exception &e) {
        const std::lock_guard lock(mutex_);
        if (error_.empty()) error_ = e.what();
        next_ = count_;
      }
    }
  }
  const std::string &error() const { return error_; }

 private:
  const int64_t count_;
  const std::function<void(int64_t)> &run_cluster_;
  std::atomic<int64_t> next_{0};
  std::mutex mutex_;
  std::string error_;
};

class Workers {
 public:
  explicit Workers(int count) {
    for (int i = 0; i < count; i++) threads_.emplace_back([this, i] { serve(i); });
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    wake_.notify_all();
    for (std::thread &thread : threads_) thread.join();
  }

  /// Runs the job on that many pool threads and on the calling one; returns when all have finished.
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
      job->work();
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

std::mutex one_job_at_a_time;
const HeldWhileForking<one_job_at_a_time> no_job_in_a_child;

/// Owns the workers; a forked child has none of its parent's threads and works alone.
struct WorkersOfProcess {
  WorkersOfProcess() : workers(new Workers(max_workers() - 1)) {
    pthread_atfork(nullptr, nullptr, [] { instance().workers = nullptr; });
  }
  ~WorkersOfProcess() { delete workers; }
  static WorkersOfProcess &instance() {
    static WorkersOfProcess it;
    return it;
  }
  Workers *workers;
};

}  // namespace

std::string run_on_workers(int64_t count, int max_workers,
                           const std::function<void(int64_t)> &run_cluster) {
  const std::lock_guard lock(one_job_at_a_time);
  Job job(count, run_cluster);
  const int64_t wanted = std::min<int64_t>(max_workers, count);
  Workers *const workers = WorkersOfProcess::instance().workers;
  if (wanted > 1 && workers != nullptr)
    workers->run(job, static_cast<int>(wanted) - 1);
  else
    job.work();
  return job.error();
}

}  // namespace mp::host::engine
