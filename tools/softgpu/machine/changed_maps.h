// Tensor maps in global memory that kernels have changed: TMA may hold what they were before, until
// a fence.proxy.tensormap acquires them.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

namespace softgpu {

class ChangedMaps {
 public:
  static ChangedMaps &get() {
    static ChangedMaps maps;
    return maps;
  }
  void add(uint64_t address) {
    const std::lock_guard lock(mutex_);
    addresses_.insert(address);
  }
  bool has(uint64_t address) {
    const std::lock_guard lock(mutex_);
    return addresses_.contains(address);
  }
  /// That memory is freed: a map that lies there later is another one.
  void forget(uint64_t begin, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    addresses_.erase(addresses_.lower_bound(begin), addresses_.lower_bound(begin + bytes));
  }

 private:
  std::mutex mutex_;
  std::set<uint64_t> addresses_;
};

}  // namespace softgpu
