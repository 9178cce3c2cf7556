// TMA stores of one thread, in commit groups.
//
// A store reads smem and later writes gmem.  Strict mode may delay each until a wait covers it.
#pragma once

#include <vector>

#include "host/engine.h"
#include "host/tensor_box.h"

namespace mp::host::engine {

struct BulkStore {
  TensorBox box;
  const std::byte *smem;
  bool add;
};

class BulkStores {
 public:
  void start(const BulkStore &, source_location);
  void commit() { group_++; }
  int64_t group() const { return group_; }

  /// Waits until all but the newest `num_pending` committed groups have read smem (wait_read), or
  /// have also written gmem (wait).  Both return the number of groups that have read smem.
  int64_t wait_read(int64_t num_pending);
  int64_t wait(int64_t num_pending);

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

}  // namespace mp::host::engine
