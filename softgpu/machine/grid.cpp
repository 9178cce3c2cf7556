// Execution of a launch by the workers.
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "softgpu/machine/block.h"
#include "softgpu/machine/chain.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/launch.h"
#include "softgpu/machine/worker.h"
#include "softgpu/options.h"
#include "softgpu/program/program.h"

namespace softgpu {
namespace {

/// Returns the number of workers: one with a seed, because only a single thread is deterministic.
int num_workers(const Grid &grid) {
  const int wanted = options().num_threads;
  const auto num_processors = static_cast<int>(std::thread::hardware_concurrency());
  const int most = wanted != 0 ? wanted : options().is_random() ? 1 : std::max(1, num_processors);
  if (grid.begin_dependent) return most;
  return static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(most), volume(grid.num_blocks)));
}

/// Instructions that the calling thread executes before it wakes other threads.  Many grids end
/// earlier, and waking a thread takes longer.
constexpr uint64_t kAlone = 2000;

/// Throws a fault if the grids were stopped before their end.
void check_end(const Grid &grid, const Progress &progress,
               const std::vector<std::unique_ptr<Runner>> &runners) {
  progress.rethrow();
  if (progress.state() == Progress::State::kRuns) return;
  std::vector<const Cluster *> clusters;
  for (const auto &runner : runners) {
    if (!runner) continue;
    for (const auto &share : runner->shares())
      for (const auto &cluster : share->clusters()) clusters.push_back(cluster.get());
  }
  const bool is_deadlocked = progress.state() == Progress::State::kDeadlocked;
  const Grid &first = clusters.empty() ? grid : *clusters[0]->grid;
  fault(std::string(is_deadlocked ? "deadlock" : "SOFTGPU_LIMIT exceeded") + " in kernel " +
            first.program->pretty_name + describe_waiting(clusters),
        FaultKind::kEndless);
}

}  // namespace

void run_grid(const Grid &grid) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const int n = num_workers(grid);
  WorkerPool &pool = WorkerPool::get();
  DependentLaunches chain(grid, n);
  std::vector<std::unique_ptr<Runner>> runners(static_cast<size_t>(n));
  runners[0] = std::make_unique<Runner>(chain, 0, pool.own());
  if (!runners[0]->run_for(kAlone)) {
    const std::function<void(int, Worker &)> run_other = [&](int index, Worker &worker) {
      auto &runner = runners[static_cast<size_t>(index)];
      runner = std::make_unique<Runner>(chain, index, worker);
      runner->run_to_end();
    };
    pool.start(n - 1, run_other);
    runners[0]->run_to_end();
    pool.wait();
  }
  check_end(grid, chain.progress(), runners);
}

namespace {

constexpr int kQuantum = 200;  // instructions per turn of a warp

/// Rounds without the end of a cluster after which the running clusters are assumed to be polling:
/// for a copy to complete, or for clusters that have not begun.
constexpr uint64_t kManyRounds = 256;

/// Clusters, on all threads, of a grid that overlaps with another one; enough to reveal accesses
/// that are too early or too late.
constexpr int kOverlapping = 16;

uint64_t num_side_by_side(const Launch &launch) {
  if (options().num_resident != 0) return static_cast<uint64_t>(options().num_resident);
  if (launch.overlaps())
    return static_cast<uint64_t>(std::max(2, kOverlapping / launch.num_shares()));
  return options().is_random() ? 4 : 2;
}

std::unique_ptr<KernelCounters> take_tally(Worker &worker) {
  if (worker.tallies.empty()) return std::make_unique<KernelCounters>();
  std::unique_ptr<KernelCounters> tally = std::move(worker.tallies.back());
  worker.tallies.pop_back();
  return tally;
}

}  // namespace

LaunchPartition::LaunchPartition(std::shared_ptr<Launch> launch, int index, Worker &worker)
    : launch_(std::move(launch)), worker_(worker), tally_(take_tally(worker)) {
  const auto num_shares = static_cast<uint64_t>(launch_->num_shares());
  // Distribute a small grid over the partitions.
  num_resident_ = std::clamp<uint64_t>((launch_->num_clusters() + num_shares - 1) / num_shares, 1,
                                       num_side_by_side(*launch_));
  tally_->reset(launch_->grid().program->code.size());
  worker_.random.seed(random_seed(launch_->grid(), static_cast<uint64_t>(index)));
}

LaunchPartition::~LaunchPartition() {
  for (auto &cluster : clusters_) ClusterMaker::recycle(worker_, *cluster);
  Totals &totals = *launch_->grid().program->totals;
  {
    const std::lock_guard lock(totals.mutex);
    totals.tally.add(*tally_);
  }
  worker_.tallies.push_back(std::move(tally_));
}

uint64_t LaunchPartition::round() {
  take_clusters();
  has_ended_ = clusters_.empty();
  const uint64_t progress = run_warps();
  end_clusters();
  if (progress != 0 && ++num_rounds_ >= kManyRounds) {
    land_something();
    take_more_at_once();
  }
  return progress;
}

bool LaunchPartition::unblock() {
  return land_something() || take_more_at_once();
}

bool LaunchPartition::give_up_waits() {
  bool any = false;
  for (Warp *warp : warps_)
    if (!warp->groups.empty() && warp->blocked_at && !warp->gives_up && may_give_up(*warp))
      any = warp->gives_up = true;
  return any;
}

/// Begins clusters until `num_resident_` are interleaved.
void LaunchPartition::take_clusters() {
  const size_t before = clusters_.size();
  uint64_t index = 0;
  while (clusters_.size() < num_resident_ && launch_->take_cluster(&index))
    clusters_.push_back(launch_->make_cluster(worker_, *tally_, index));
  if (clusters_.size() != before) list_warps();
}

/// Doubles the number of interleaved clusters.  Returns false if the device is full, or if the
/// clusters would only wait for another grid or park.
bool LaunchPartition::take_more_at_once() {
  if (launch_->waits() || launch_->state()->num_parked != 0) return false;
  const size_t before = clusters_.size();
  num_rounds_ = 0;
  num_resident_ = std::min(2 * num_resident_, std::max(num_resident_, launch_->capacity()));
  take_clusters();
  return clusters_.size() != before;
}

/// Runs one quantum of each warp.  Returns the number of instructions plus other progress.
uint64_t LaunchPartition::run_warps() {
  if (options().is_random()) std::shuffle(warps_.begin(), warps_.end(), worker_.random);
  uint64_t progress = 0;
  for (Warp *warp : warps_) {
    if (warp->groups.empty()) continue;
    if (options().lags && rests(*warp)) {
      progress++;
      continue;
    }
    progress += run(*warp, quantum());
    if (warp->groups.empty()) {
      end_warp(*warp);
      progress++;
    }
    if (options().completion == Completion::kRandom) progress += land_at_random(*warp);
  }
  return progress;
}

/// Returns whether the warp skips this quantum.  With probability 1/32 per quantum, a warp starts a
/// pause of up to 256 quanta: rarely, so that few warps of a block pause, and once per warp, so
/// that waiting warps are not delayed forever.
bool LaunchPartition::rests(Warp &warp) {
  if (!warp.has_rested && random_below(worker_, 32) == 0) {
    warp.has_rested = true;
    warp.num_rests = 1 + random_below(worker_, 256);
  }
  if (warp.num_rests == 0) return false;
  warp.num_rests--;
  return true;
}

int LaunchPartition::quantum() {
  if (options().quantum != 0) return options().quantum;
  if (!options().is_random()) return kQuantum;
  const bool is_long = random_below(worker_, 4) == 0;
  return 1 + static_cast<int>(random_below(worker_, is_long ? 1000 : 40));
}

/// Completes pending operations at random.
uint64_t LaunchPartition::land_at_random(Warp &warp) {
  if (random_below(worker_, 3) != 0) return 0;
  const uint64_t progress = advance_bulk_copies(*warp.block->cluster, true) ? 1 : 0;
  if (warp.groups.empty()) return progress;
  const auto &pending = warp.copies.pending;
  if (!pending.empty() && random_below(worker_, 2) != 0)
    land_copy(warp, random_below(worker_, pending.size()));
  const auto &operations = warp.wgmma.operations;
  if (!operations.empty() && random_below(worker_, 2) != 0) {
    const auto any = random_below(worker_, operations.size());
    perform_wgmma(warp, operations[any].sequence + 1);
  }
  return progress;
}

/// Completes a pending copy.  Returns false if there is none.
bool LaunchPartition::land_something() {
  bool has_landed = false;
  for (auto &cluster : clusters_) has_landed |= advance_bulk_copies(*cluster, false);
  if (has_landed) return true;
  for (Warp *warp : warps_) {
    if (warp->groups.empty() || warp->copies.pending.empty()) continue;
    land_copy(*warp, 0);
    return true;
  }
  return false;
}

/// Removes clusters whose warps have all exited.
void LaunchPartition::end_clusters() {
  const auto has_ended = [&](const std::unique_ptr<Cluster> &cluster) {
    if (cluster->num_running != 0) return false;
    while (advance_bulk_copies(*cluster, false)) {
    }
    ClusterMaker::recycle(worker_, *cluster);
    launch_->end_cluster();
    return true;
  };
  if (std::erase_if(clusters_, has_ended) == 0) return;
  num_rounds_ = 0;
  list_warps();
}

void LaunchPartition::list_warps() {
  warps_.clear();
  for (auto &cluster : clusters_)
    for (auto &block : cluster->blocks)
      for (auto &warp : block->warps) warps_.push_back(warp.get());
}

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
