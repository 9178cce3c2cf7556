// State of a block's async proxy: checks and pending operations of TMA (sm90_tma.h) and wgmma.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "host/engine.h"
#include "host/tensor_box.h"

namespace mp::host::engine {

// ---------------------------------------------------------------------------- generic writes

// Shared memory of a block that was written through the generic proxy and may not be visible to the
// async proxy (TMA, wgmma), because the writing thread has not called async_proxy_fence.
//
// Only writes of store_matrix_x4 are recorded here; the software device tracks all writes.  For
// every 16 bytes of smem, the last write is stored as a thread and an epoch of that thread.  A
// fence begins a new epoch of its thread, a new block begins new epochs of all threads.
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

// ---------------------------------------------------------------------------- bulk stores

// TMA stores of one thread, in commit groups.  A store reads smem and later writes gmem.  Strict
// mode may delay each until a wait covers it.
struct BulkStore {
  TensorBox box;
  const std::byte *smem;
  bool add;
};

class BulkStores {
 public:
  void start(const BulkStore &, source_location);
  void commit() { group_++; }

  /// Waits until all but the newest `num_pending` committed groups have read smem (wait_read), or
  /// have also written gmem (wait).
  void wait_read(int64_t num_pending);
  void wait(int64_t num_pending);

  /// Executes the pending writes to gmem when the thread returns from the kernel.  Returns false if
  /// the thread has not waited for all its stores to read smem.
  bool finish();
  source_location newest() const { return newest_at_; }

 private:
  struct Pending {
    BulkStore store;
    int64_t group;
    bool has_read;
    std::vector<std::byte> bytes;  ///< contents read from smem
  };

  static void read(Pending &);
  static void write(const Pending &);

  std::vector<Pending> pending_;  ///< oldest first
  int64_t group_ = 0;             ///< commits so far
  int64_t groups_read_ = 0;       ///< groups below this number have read smem
  int64_t newest_group_ = -1;     ///< newest group that contains a store
  source_location newest_at_;
};

// ---------------------------------------------------------------------------- async proxy

struct AsyncProxy {
  GenericWrites writes;
  std::vector<BulkStores> stores;      ///< one per thread; empty until the first store of the block
  std::vector<TensorMap *> made_maps;  ///< in gmem, without tensor_map_release yet
  std::unordered_set<const TensorMap *> fresh_maps;  ///< in gmem, tensor_map_acquire called

  void begin_block() {
    writes.begin_block();
    stores.clear();
    made_maps.clear();
    fresh_maps.clear();
  }
};

/// Retires the TMA stores of a thread that returns from the kernel (tma.cpp).  Reports a violation
/// if a store may not have read shared memory yet.
void finish_bulk_stores();

}  // namespace mp::host::engine
