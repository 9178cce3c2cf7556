// Which thread of a cluster runs next, and when asynchronous operations are performed.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "host/engine.h"
#include "host/random.h"

namespace mp::host::engine {

class Scheduler {
 public:
  /// All threads of the cluster can run.  A seed of the strict mode gives every cluster of the grid
  /// a schedule of its own.
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

  /// The next lane to run; NULL if none can.  In the plain mode the lanes of a warp run in order,
  /// then those of the next warp; in the strict mode any lane that can run may be next.
  Thread *pick() {
    if (mode_.strict) return pick_any();
    if (cluster_->warps[current_warp_].ready == 0 && !find_ready_warp(current_warp_))
      return nullptr;
    return take_lane(0);
  }

  /// True if, in the strict mode, another thread shall run first at a place where it may.
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

  /// For a while a quarter of the warps, or one block, runs only when nothing else can.  A choice
  /// made anew at each switch would keep all warps at about the same place.
  void hold_back() {
    const Block &block = cluster_->blocks[random_.next() % static_cast<uint32_t>(cluster_->size)];
    const uint32_t warps = static_cast<uint32_t>((uint64_t{1} << block.num_warps()) - 1);
    const bool whole_block = cluster_->size > 1 && random_.next() % 2 == 0;
    held_back_ = whole_block ? warps << block.warps->slot : random_.next() & random_.next();
    switches_held_ = 64 << random_.next() % 8;
  }

  /// Makes it current_warp_: the first of `among` that is ready, counted from warp `start` on.
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

  /// Performs any one of the operations, on the stack of the running fiber.
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
  uint32_t ready_warps_ = 0;  ///< by slot; may include warps that are no longer ready
  uint32_t held_back_ = 0;    ///< warps, by slot
  int switches_held_ = 0;     ///< how many switches they stay held back
};

}  // namespace mp::host::engine
