// Running grid: its shared state, and the partition that one worker runs round by round.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "softgpu/machine/block.h"
#include "softgpu/machine/cluster.h"
#include "softgpu/machine/worker.h"

namespace softgpu {

struct Grid;
struct Program;

constexpr int kRegistersPerThread = 255;

/// Returns the registers per thread at kernel entry: the maximum, in steps of 8, with which
/// .minnctapersm blocks of .maxntid threads (otherwise one block of 1024) fit on a multiprocessor.
int initial_registers(const Program &);
/// Returns initial_registers() if the PTX specifies the bounds, otherwise 0.
int register_bound(const Program &);

/// Returns the number of blocks that fit on a multiprocessor.
/// @param smem  bytes per block, without the reserved part
int blocks_per_sm(const Program &, int num_threads, uint64_t smem);
/// Returns the number of clusters of a grid that fit on the device, at least 1.
uint64_t clusters_per_device(const Grid &);

class GlobalRaces;

/// Running grid.  Thread-safe, except for the constructor.
class Launch {
 public:
  /// @param races   null unless options().checks_races
  /// @param before  state of the previous grid, if this grid begins before its end
  Launch(std::shared_ptr<const Grid>, int num_shares, GlobalRaces *races,
         std::shared_ptr<const GridState> before = nullptr);
  /// Adds the launch to the totals of the program.
  ~Launch();

  const Grid &grid() const { return *grid_; }
  const std::shared_ptr<GridState> &state() const { return state_; }
  uint64_t num_clusters() const { return num_clusters_; }
  int num_shares() const { return num_shares_; }
  /// Returns whether it overlaps, or will overlap, with another grid.
  bool overlaps() const { return before_ != nullptr || grid_->begin_dependent != nullptr; }
  /// Returns whether the previous grid has not ended.
  bool waits() const { return before_ != nullptr && !before_->has_ended(); }

  uint64_t capacity() const { return capacity_; }
  /// Assigns a cluster that has not begun.  Returns false if there is none or if the device is
  /// full: the worker that ends a cluster must then try again.
  bool take_cluster(uint64_t *index);
  void end_cluster();
  std::unique_ptr<Cluster> make_cluster(Worker &, KernelCounters &, uint64_t index) const;
  /// Counts executed instructions.  Returns false if they exceed the limit.
  bool note_instructions(uint64_t);

 private:
  const std::shared_ptr<const Grid> grid_;
  const uint64_t num_clusters_, capacity_;
  GlobalRaces *const races_;
  const uint32_t first_cluster_;  ///< number of the first cluster in races_
  const int num_shares_;
  const std::chrono::steady_clock::time_point begin_;
  const std::shared_ptr<GridState> state_;
  const std::shared_ptr<const GridState> before_;
  ClusterMaker maker_;
  std::vector<uint32_t> order_;  ///< order of the clusters; empty: by index
  std::mutex mutex_;             // guards the next two members
  uint64_t next_cluster_ = 0, num_running_ = 0;
  std::atomic<uint64_t> num_instructions_{0};
};

/// Partition of a launch that one worker runs.
class LaunchPartition {
 public:
  LaunchPartition(std::shared_ptr<Launch>, int index, Worker &);
  /// Adds the counters to the totals of the program.
  ~LaunchPartition();

  /// Runs one quantum of each warp.  Returns the number of instructions plus other progress.
  uint64_t round();
  /// Completes copies or begins more clusters after a round without progress.  Returns false if
  /// neither is possible.
  bool unblock();
  /// Lets waits for mbarriers return false, as the last resort.  Returns false if all have done so
  /// without a change of an mbarrier since.
  bool give_up_waits();
  /// Returns whether the last round found no clusters to run.
  bool has_ended() const { return has_ended_; }

  Launch &launch() const { return *launch_; }
  const std::vector<std::unique_ptr<Cluster>> &clusters() const { return clusters_; }

 private:
  void take_clusters();
  bool take_more_at_once();
  uint64_t run_warps();
  uint64_t land_at_random(Warp &);
  bool land_something();
  void end_clusters();
  void list_warps();
  int quantum();
  bool rests(Warp &);

  const std::shared_ptr<Launch> launch_;
  Worker &worker_;
  std::unique_ptr<KernelCounters> tally_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<Warp *> warps_;  ///< in the order of a round
  uint64_t num_resident_ = 0;  ///< number of clusters to interleave
  uint64_t num_rounds_ = 0;    ///< rounds since a cluster began or ended
  bool has_ended_ = false;
};

/// Returns the seed of one of the random number generators of a launch.
uint64_t random_seed(const Grid &, uint64_t generator);

/// Describes the positions of all warps that have not exited.
std::string describe_waiting(const std::vector<const Cluster *> &);

}  // namespace softgpu
