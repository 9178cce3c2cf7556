// What TMA (sm90_tma.h) has to remember of a block.  Bodies in tma.cpp.
#pragma once

#include <unordered_set>
#include <vector>

#include "kernels/simt/sim/bulk_stores.h"
#include "kernels/simt/sim/engine.h"
#include "kernels/simt/sim/generic_writes.h"

namespace mp::host::engine {

struct AsyncProxy {
  GenericWrites writes;
  std::vector<BulkStores> stores;                    ///< by thread; empty until the first store
  std::unordered_set<const TensorMap *> fresh_maps;  ///< in gmem, after tensor_map_acquire

  void begin_block() {
    writes.begin_block();
    stores.clear();
    fresh_maps.clear();
  }
};

/// The running thread returns: a violation if a TMA store of it may not have read shared memory.
void finish_bulk_stores();

}  // namespace mp::host::engine
