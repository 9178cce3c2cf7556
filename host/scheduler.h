// Scheduler: selects the next thread of a cluster and executes deferred asynchronous operations.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "host/engine.h"

namespace mp::host::engine {

// ---------------------------------------------------------------------------- random numbers

/// Random numbers of strict mode, by xorshift64*: equal seeds give equal schedules on all machines.
class Random {
 public:
  void seed(uint64_t value) { state_ = value * 0x9E3779B97F4A7C15u | 1; }
  uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>(state_ * 0x2545F4914F6CDD1Du >> 32);
  }

 private:
  uint64_t state_ = 1;
};

// ---------------------------------------------------------------------------- scheduler

class Scheduler {
 public:
  /// Makes all threads of the cluster ready.  In strict mode, every cluster of the grid has a
  /// different schedule, which depends on the seed.
  void begin_cluster(const Cluster &cluster, int64_t index, const Mode &mode) {
    cluster_ = &cluster;
    mode_ = mode;
    random_.seed(mode.seed * 1000003 + static_cast<uint64_t>(index) + 1);
    forget_async();
    current_warp_ = 0;
    ready_warps_ = 0;
    hold_back();
    for (int w = 0; w < cluster.num_warps; w++) wake(cluster.warps[w], ~0u);
  }

  void wake(Warp &warp, uint32_t lanes) {
    warp.ready |= lanes;
    ready_warps_ |= 1u << warp.slot;
  }

  /// Returns the next lane to run, or NULL if none is ready.  Plain mode runs the lanes of a warp
  /// in order, then those of the next warp; strict mode selects any ready lane.
  Thread *pick() {
    if (mode_.strict) return pick_any();
    if (cluster_->warps[current_warp_].ready == 0 && !find_ready_warp(current_warp_))
      return nullptr;
    return take_lane(0);
  }

  /// Returns whether another thread runs first at a switch point (strict mode only).
  bool wants_switch() {
    constexpr uint32_t kPlacesPerSwitch = 4;
    return mode_.strict && random_.next() % kPlacesPerSwitch == 0;
  }

  bool defer_copy() {
    if (mode_.copies == CopyTiming::random) return random_.next() & 1;
    return mode_.copies == CopyTiming::late;
  }
  void keep_async(std::function<void()> perform) {
    async_.push_back({current, std::move(perform)});
  }
  void forget_async() {
    async_.clear();
    performing_ = {};
  }

 private:
  struct AsyncOperation {
    Thread *started_by;
    std::function<void()> perform;
  };

  Thread *pick_any() {
    constexpr uint32_t kSwitchesPerOperation = 4;
    if (!async_.empty() && mode_.copies == CopyTiming::random &&
        random_.next() % kSwitchesPerOperation == 0)
      perform_async();
    if (--switches_held_ <= 0) hold_back();
    const int start = static_cast<int>(random_.next() % static_cast<uint32_t>(cluster_->num_warps));
    if (find_ready_warp(start, ~held_back_))
      return take_lane(static_cast<int>(random_.next() % kWarpSize));
    while (!find_ready_warp(start)) {
      if (async_.empty()) return nullptr;
      perform_async();
    }
    return take_lane(static_cast<int>(random_.next() % kWarpSize));
  }

  /// Selects a quarter of the warps, or one block, to run only if no other warp is ready, for a
  /// number of switches.  Selecting again at each switch would keep all warps at about the same
  /// point.
  void hold_back() {
    const Block &block = cluster_->blocks[random_.next() % static_cast<uint32_t>(cluster_->size)];
    const uint32_t warps = static_cast<uint32_t>((uint64_t{1} << block.num_warps()) - 1);
    const bool whole_block = cluster_->size > 1 && random_.next() % 2 == 0;
    held_back_ = whole_block ? warps << block.warps->slot : random_.next() & random_.next();
    switches_held_ = 64 << random_.next() % 8;
  }

  /// Sets current_warp_ to the first ready warp of `among`, starting at warp `start`; returns false
  /// if none is ready.
  bool find_ready_warp(int start, uint32_t among = ~0u) {
    while ((ready_warps_ & among) != 0) {
      const int slot =
          (std::countr_zero(std::rotr(ready_warps_ & among, start)) + start) % kWarpSize;
      if (cluster_->warps[slot].ready != 0) {
        current_warp_ = slot;
        return true;
      }
      ready_warps_ &= ~(1u << slot);
    }
    return false;
  }

  Thread *take_lane(int start) {
    Warp &warp = cluster_->warps[current_warp_];
    const int lane = (std::countr_zero(std::rotr(warp.ready, start)) + start) % kWarpSize;
    warp.ready &= ~(1u << lane);
    return warp.lanes + lane;
  }

  /// Executes a random pending operation on the stack of the running fiber.
  void perform_async() {
    std::swap(async_[random_.next() % async_.size()], async_.back());
    performing_ = std::move(async_.back());
    async_.pop_back();
    current = performing_.started_by;
    performing_.perform();
  }

  const Cluster *cluster_ = nullptr;
  Mode mode_;
  Random random_;
  std::vector<AsyncOperation> async_;
  AsyncOperation performing_{};
  int current_warp_ = 0;
  uint32_t ready_warps_ = 0;  ///< bit per slot; a superset of the ready warps
  uint32_t held_back_ = 0;    ///< bit per slot
  int switches_held_ = 0;     ///< switches until the next selection
};

}  // namespace mp::host::engine
