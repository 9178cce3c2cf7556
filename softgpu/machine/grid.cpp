// Execution of a launch by the workers.
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "softgpu/machine/chain.h"
#include "softgpu/machine/faults.h"
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

}  // namespace softgpu
