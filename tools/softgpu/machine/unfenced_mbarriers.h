// mbarriers of a block whose initialisation other blocks of the cluster need not see yet.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/softgpu/machine/lanes.h"

namespace softgpu {

/// Those who use an mbarrier of another block, which may be its asynchronous copies.
enum class MbarrierUser : uint8_t { kThread, kBulkCopy };

/// A cluster of one block notes nothing, so that the list is empty and costs nothing.
class UnfencedMbarriers {
 public:
  void initialise(uint32_t offset, int thread) {
    forget(offset);
    list_.push_back({offset, thread, false});
  }
  void forget(uint32_t offset) {
    std::erase_if(list_, [&](const Entry &x) { return x.offset == offset; });
  }
  /// fence.mbarrier_init, or fence.proxy.async: all see what these threads have initialised.
  void fence(int first_thread, Lanes lanes) {
    std::erase_if(list_, [&](const Entry &x) { return is_of(x, first_thread, lanes); });
  }
  /// What releases generic writes to the cluster: other threads see it, and the async proxy does not.
  void release(int first_thread, Lanes lanes) {
    for (Entry &x : list_) x.is_released |= is_of(x, first_thread, lanes);
  }
  /// The thread that has initialised the mbarrier, if the user need not see that; else -1.
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
