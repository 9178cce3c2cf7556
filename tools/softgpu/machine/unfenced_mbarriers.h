// mbarriers of a block whose initialization may be invisible to other blocks of the cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/softgpu/machine/lanes.h"

namespace softgpu {

/// Access to an mbarrier of another block: by a thread, or by an asynchronous copy.
enum class MbarrierUser : uint8_t { kThread, kBulkCopy };

/// List of these mbarriers; always empty in a cluster of one block.
class UnfencedMbarriers {
 public:
  void initialise(uint32_t offset, int thread) {
    forget(offset);
    list_.push_back({offset, thread, false});
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

 private:
  struct Entry {
    uint32_t offset;
    int thread;
    bool is_released;
  };
  static bool is_of(const Entry &x, int first_thread, Lanes lanes) {
    const int lane = x.thread - first_thread;
    return lane >= 0 && lane < kWarpSize && (lanes >> lane & 1) != 0;
  }

  std::vector<Entry> list_;
};

}  // namespace softgpu
