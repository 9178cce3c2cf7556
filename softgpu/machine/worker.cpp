#include "softgpu/machine/worker.h"

#include <thread>

#include "softgpu/machine/block.h"

namespace softgpu {

WorkerPool &WorkerPool::get() {
  static WorkerPool &pool = *new WorkerPool;  // never destroyed: its threads may outlive main
  return pool;
}

WorkerPool::WorkerPool() {
  workers_.push_back(std::make_unique<Worker>());
}

void WorkerPool::start(int num_others, const std::function<void(int, Worker &)> &f) {
  while (static_cast<int>(workers_.size()) <= num_others) {
    const auto index = static_cast<int>(workers_.size());
    workers_.push_back(std::make_unique<Worker>());
    Worker &worker = *workers_.back();
    std::thread([this, index, &worker, seen = num_jobs_] { loop(index, worker, seen); }).detach();
  }
  {
    const std::lock_guard lock(mutex_);
    job_ = &f;
    num_wanted_ = num_busy_ = num_others;
    num_jobs_++;
  }
  if (num_others > 0) wake_.notify_all();
}

void WorkerPool::wait() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return num_busy_ == 0; });
}

/// Main function of a worker's thread.
/// @param seen  number of finished jobs
void WorkerPool::loop(int index, Worker &worker, uint64_t seen) {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return num_jobs_ != seen; });
    seen = num_jobs_;
    if (index > num_wanted_) continue;
    const auto &job = *job_;
    lock.unlock();
    job(index, worker);
    lock.lock();
    if (--num_busy_ == 0) done_.notify_one();
  }
}

uint64_t random_below(Worker &worker, uint64_t n) {
  return n == 0 ? 0 : worker.random() % n;
}
uint64_t random_below(Cluster &cluster, uint64_t n) {
  return random_below(*cluster.worker, n);
}
uint64_t random_below(Warp &warp, uint64_t n) {
  return random_below(*warp.block->cluster, n);
}

}  // namespace softgpu
