// A grid under way: what its workers share, and the part of it that one worker runs, round by round.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/softgpu/machine/block.h"
#include "tools/softgpu/machine/cluster.h"
#include "tools/softgpu/machine/dependence.h"
#include "tools/softgpu/machine/worker.h"

namespace softgpu {

/// All functions but the constructor may be called by several threads.
class Launch {
 public:
  /// @param before  of the grid that this one depends on, if it begins early
  Launch(std::shared_ptr<const Grid>, int num_shares,
         std::shared_ptr<const GridState> before = nullptr);
  /// Adds to the totals of the program.
  ~Launch();

  const Grid &grid() const { return *grid_; }
  const std::shared_ptr<GridState> &state() const { return state_; }
  uint64_t num_clusters() const { return num_clusters_; }
  int num_shares() const { return num_shares_; }
  /// Whether it runs beside another grid, or is to.
  bool overlaps() const { return before_ != nullptr || grid_->begin_dependent != nullptr; }
  /// Whether it has begun before the grid that it depends on has ended.
  bool waits() const { return before_ != nullptr && !before_->has_ended(); }

  uint64_t capacity() const { return capacity_; }
  /// The index of a cluster that nobody has taken; false if there is none, or if as many run as the device has room for:
  /// whoever ends one of those asks again.
  bool take_cluster(uint64_t *index);
  void end_cluster();
  std::unique_ptr<Cluster> make_cluster(Worker &, KernelCounters &, uint64_t index) const;
  void recycle(Worker &, Cluster &) const;
  /// Counts instructions; false if there were too many.
  bool note_instructions(uint64_t);

 private:
  const std::shared_ptr<const Grid> grid_;
  const uint64_t num_clusters_, capacity_;
  const int num_shares_;
  const std::chrono::steady_clock::time_point begin_;
  const std::shared_ptr<GridState> state_;
  const std::shared_ptr<const GridState> before_;
  ClusterMaker maker_;
  std::vector<uint32_t> order_;  ///< of the clusters; empty: as they are numbered
  std::mutex mutex_;             // of the next two
  uint64_t next_cluster_ = 0, num_running_ = 0;
  std::atomic<uint64_t> num_instructions_{0};
};

/// The part of a launch that one worker runs.
class LaunchPartition {
 public:
  LaunchPartition(std::shared_ptr<Launch>, int index, Worker &);
  /// Adds what was counted to the totals of the program.
  ~LaunchPartition();

  /// Lets each warp run for a while; returns how many instructions that were, and other progress.
  uint64_t round();
  /// When nothing got on: copies land, or more clusters begin; false if that is impossible.
  bool unblock();
  /// The last resort: waits for mbarriers return though nothing is done; false if all have before, and nothing came of it.
  bool give_up_waits();
  /// Whether the last round found no clusters to run.
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
  uint64_t num_resident_ = 0;  ///< clusters to run side by side
  uint64_t num_rounds_ = 0;    ///< since a cluster began or ended
  bool has_ended_ = false;
};

/// What a generator of random numbers begins with: one of several of a launch.
uint64_t random_seed(const Grid &, uint64_t generator);

/// Where all warps that have not left the kernel are.
std::string describe_waiting(const std::vector<const Cluster *> &);

}  // namespace softgpu
