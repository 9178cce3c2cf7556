// The async proxy's state for one block: what TMA (sm90_tma.h) and wgmma check and have in progress.
// The functions are in tma.cpp.
#pragma once

#include <unordered_set>
#include <vector>

#include "host/bulk_stores.h"
#include "host/engine.h"
#include "host/generic_writes.h"

namespace mp::host::engine {

struct AsyncProxy {
  GenericWrites writes;
  std::vector<BulkStores> stores;      ///< by thread; empty until the first store of the block
  std::vector<TensorMap *> made_maps;  ///< in gmem, that tensor_map_release was not yet called for
  std::unordered_set<const TensorMap *>
      fresh_maps;  ///< maps in gmem that tensor_map_acquire was called for

  void begin_block() {
    writes.begin_block();
    stores.clear();
    made_maps.clear();
    fresh_maps.clear();
  }
};

/// The running thread returns from the kernel.  A violation if one of its TMA stores may not have read
/// shared memory yet.
void finish_bulk_stores();

}  // namespace mp::host::engine
