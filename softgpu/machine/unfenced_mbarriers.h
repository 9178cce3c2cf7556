// mbarriers of a block whose initialization may be invisible to other blocks of the cluster, or to
// the async proxy.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/machine/lanes.h"

namespace softgpu {

/// User of an mbarrier: a thread, or an asynchronous copy.
enum class MbarrierUser : uint8_t { kThread, kBulkCopy };

/// List of these mbarriers.
class UnfencedMbarriers {
 public:
  /// @param time  SharedMemory::time()
  void initialise(uint32_t offset, int thread, uint32_t time) {
    forget(offset);
    list_.push_back({offset, thread, time, false});
  }
  void forget(uint32_t offset) {
    std::erase_if(list_, [&](const Entry &x) { return x.offset == offset; });
  }
  /// Makes initializations of these threads visible to all: fence.mbarrier_init or
  /// fence.proxy.async.
  void fence(int first_thread, Lanes lanes) {
    std::erase_if(list_, [&](const Entry &x) { return is_of(x, first_thread, lanes); });
  }
  /// Releases generic writes to the cluster: other threads see them, the async proxy does not.
  void release(int first_thread, Lanes lanes) {
    for (Entry &x : list_) x.is_released |= is_of(x, first_thread, lanes);
  }
  /// Returns the thread whose initialization of the mbarrier may be invisible to the user, or -1.
  int unfenced_thread(uint32_t offset, MbarrierUser user) const {
    for (const Entry &x : list_)
      if (x.offset == offset && !(x.is_released && user == MbarrierUser::kThread)) return x.thread;
    return -1;
  }
  /// Returns unfenced_thread for a copy that a thread of the block issues.
  /// @param fenced  time of the last proxy fence of that thread, which may follow a barrier
  int unfenced_thread_of_own(uint32_t offset, uint32_t fenced) const {
    for (const Entry &x : list_)
      if (x.offset == offset && fenced <= x.time) return x.thread;
    return -1;
  }

 private:
  struct Entry {
    uint32_t offset;
    int thread;
    uint32_t time;
    bool is_released;
  };
  static bool is_of(const Entry &x, int first_thread, Lanes lanes) {
    const int lane = x.thread - first_thread;
    return lane >= 0 && lane < kWarpSize && (lanes >> lane & 1) != 0;
  }

  std::vector<Entry> list_;
};

}  // namespace softgpu
