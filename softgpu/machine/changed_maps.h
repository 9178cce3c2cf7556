// Tensor maps in global memory that kernels have modified.  Modifications use the generic proxy,
// TMA reads use the tensormap proxy: one fence.proxy.tensormap must release a modification and
// another must acquire it (PTX ISA, Tensor Map Proxy).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_set>

namespace softgpu {

enum class MapChange : uint8_t { kNone, kMade, kReleased };

class ChangedMaps {
 public:
  static ChangedMaps &get() {
    static ChangedMaps maps;
    return maps;
  }
  void set(uint64_t address, MapChange change) {
    const std::lock_guard lock(mutex_);
    changes_[address] = change;
  }
  void release(const std::unordered_set<uint64_t> &addresses) {
    const std::lock_guard lock(mutex_);
    for (const uint64_t address : addresses) changes_[address] = MapChange::kReleased;
  }
  MapChange at(uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto found = changes_.find(address);
    return found == changes_.end() ? MapChange::kNone : found->second;
  }
  /// Removes the maps in freed memory: a later map at the same address is unrelated.
  void forget(uint64_t begin, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    changes_.erase(changes_.lower_bound(begin), changes_.lower_bound(begin + bytes));
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, MapChange> changes_;
};

}  // namespace softgpu
