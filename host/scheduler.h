// Scheduler: selects the next thread of a cluster.
#pragma once

#include <bit>
#include <cstdint>

#include "host/engine.h"

namespace mp::host::engine {

class Scheduler {
 public:
  /// Makes all threads of the cluster ready.
  void begin_cluster(const Cluster &cluster) {
    cluster_ = &cluster;
    current_warp_ = 0;
    ready_warps_ = 0;
    for (int w = 0; w < cluster.num_warps; w++) wake(cluster.warps[w], ~0u);
  }

  void wake(Warp &warp, uint32_t lanes) {
    warp.ready |= lanes;
    ready_warps_ |= 1u << warp.slot;
  }

  /// Returns the next lane to run, or NULL if none is ready.  The lanes of a warp run in order,
  /// then those of the next warp.
  Thread *pick() {
    if (cluster_->warps[current_warp_].ready == 0 && !find_ready_warp()) return nullptr;
    Warp &warp = cluster_->warps[current_warp_];
    const int lane = std::countr_zero(warp.ready);
    warp.ready &= warp.ready - 1;
    return warp.lanes + lane;
  }

 private:
  /// Sets current_warp_ to the first ready warp, starting at the current one; returns false if none
  /// is ready.
  bool find_ready_warp() {
    while (ready_warps_ != 0) {
      const int start = current_warp_;
      const int slot = (std::countr_zero(std::rotr(ready_warps_, start)) + start) % kWarpSize;
      if (cluster_->warps[slot].ready != 0) {
        current_warp_ = slot;
        return true;
      }
      ready_warps_ &= ~(1u << slot);
    }
    return false;
  }

  const Cluster *cluster_ = nullptr;
  int current_warp_ = 0;
  uint32_t ready_warps_ = 0;  ///< bit per slot; a superset of the ready warps
};

}  // namespace mp::host::engine
