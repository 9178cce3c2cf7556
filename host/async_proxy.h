// State of a block's async proxy: checks and pending operations of TMA (sm90_tma.h) and wgmma.
// Implemented in tma.cpp.
#pragma once

#include <unordered_set>
#include <vector>

#include "host/bulk_stores.h"
#include "host/engine.h"
#include "host/generic_writes.h"

namespace mp::host::engine {

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

/// Retires the TMA stores of a thread that returns from the kernel.  Reports a violation if a store
/// may not have read shared memory yet.
void finish_bulk_stores();

}  // namespace mp::host::engine
