// Shared memory of a block that was written through the generic proxy and may not be visible to the
// async proxy (TMA, wgmma), because the writing thread has not called async_proxy_fence.
//
// Only writes of store_matrix_x4 are recorded here; the race detector tracks all writes.  For every
// 16 bytes of smem, the last write is stored as a thread and an epoch of that thread.  A fence
// begins a new epoch of its thread, a new block begins new epochs of all threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/engine.h"

namespace mp::host::engine {

class GenericWrites {
 public:
  void begin_block() { block_epoch_ = ++last_epoch_; }

  /// Records a write.  Offsets are those of SmemAddress.
  void note(int thread, size_t offset, size_t bytes) {
    if (marks_.empty()) marks_.resize(kUnits);
    const uint64_t mark = epoch_of(thread) << kThreadBits | static_cast<uint64_t>(thread);
    for (size_t unit = offset / kUnitBytes; unit * kUnitBytes < offset + bytes; unit++)
      marks_[unit] = mark;
  }

  void fence(int thread) { epochs_[static_cast<size_t>(thread)] = ++last_epoch_; }

  /// First write in a range that lacks a fence; thread -1 if there is none.
  struct Unfenced {
    int thread;
    size_t offset;
  };
  Unfenced find(size_t offset, size_t bytes) const {
    if (marks_.empty()) return {-1, 0};
    for (size_t unit = offset / kUnitBytes; unit * kUnitBytes < offset + bytes; unit++) {
      const int thread = static_cast<int>(marks_[unit] % kMaxThreads);
      if (marks_[unit] >> kThreadBits == epoch_of(thread))
        return {thread, std::max(offset, unit * kUnitBytes)};
    }
    return {-1, 0};
  }

 private:
  static constexpr size_t kUnitBytes = 16;
  static constexpr int kThreadBits = 10;
  static_assert(kMaxThreads == 1 << kThreadBits);
  static constexpr size_t kUnits = (size_t{1} << 18) / kUnitBytes;
  static_assert(kUnits * kUnitBytes > kSmemBytes);

  uint64_t epoch_of(int thread) const {
    return std::max(epochs_[static_cast<size_t>(thread)], block_epoch_);
  }

  std::vector<uint64_t> marks_;
  std::array<uint64_t, kMaxThreads> epochs_{};
  uint64_t block_epoch_ = 0;
  uint64_t last_epoch_ = 0;
};

}  // namespace mp::host::engine
