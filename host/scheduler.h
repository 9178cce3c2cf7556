// Scheduler: selects the next thread of a cluster.
#pragma once

#include <array>
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
    ready_warps_ = {};
    for (int w = 0; w < cluster.num_warps; w++) wake(cluster.warps[w], ~0u);
  }

  void wake(Warp &warp, uint32_t lanes) {
    warp.ready |= lanes;
    ready_warps_[warp.slot / kWord] |= uint64_t{1} << warp.slot % kWord;
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
    while (true) {
      const int slot = next_marked();
      if (slot < 0) return false;
      if (cluster_->warps[slot].ready != 0) {
        current_warp_ = slot;
        return true;
      }
      ready_warps_[slot / kWord] &= ~(uint64_t{1} << slot % kWord);
    }
  }

  /// Returns the first slot in ready_warps_, starting at the current one, or -1.
  int next_marked() const {
    const int word = current_warp_ / kWord, bit = current_warp_ % kWord;
    if (const uint64_t rest = ready_warps_[word] >> bit; rest != 0)
      return current_warp_ + std::countr_zero(rest);
    for (int i = 1; i <= kWords; i++) {
      const int other = (word + i) % kWords;
      if (ready_warps_[other] != 0) return other * kWord + std::countr_zero(ready_warps_[other]);
    }
    return -1;
  }

  static constexpr int kWord = 64, kWords = (kMaxClusterThreads / kWarpSize + kWord - 1) / kWord;

  const Cluster *cluster_ = nullptr;
  int current_warp_ = 0;
  std::array<uint64_t, kWords> ready_warps_{};  ///< bit per slot; a superset of the ready warps
};

}  // namespace mp::host::engine
