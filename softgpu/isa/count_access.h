// Observation of memory accesses: traffic counters (SOFTGPU_COUNT) and reads of uninitialized
// memory (SOFTGPU_INITCHECK).  race_access.h checks races, for which the lane of each access is
// needed.
//
// Decoders that support observation check watches_memory(), so unobserved instructions have no
// overhead.
#pragma once

#include <cstdint>
#include <span>

#include "softgpu/machine/warp.h"
#include "softgpu/options.h"
#include "softgpu/program/instruction.h"
#include "softgpu/program/kernel_counters.h"
#include "softgpu/program/program.h"

namespace softgpu {

struct Block;

enum class Access : uint8_t { kRead, kWrite, kUpdate };

inline bool watches_memory() {
  return options().counts_memory || options().checks_initialised || options().checks_races;
}

/// Counts a request of a warp and its bytes; always enabled.
inline void count_bytes(Warp &warp, const Instruction &i, uint64_t bytes) {
  AccessCount &count = warp.tally->accesses[warp.program->index_of(i)];
  count.requests++;
  count.bytes += bytes;
}

// The following functions have no effect unless watches_memory(), and do not call count_bytes.

/// Records an access of each lane to `bytes` bytes at its address in global memory.
void watch_global(Warp &, const Instruction &, Lanes, const uint64_t *addresses, uint32_t bytes,
                  Access);
/// Records an access to shared memory, in any block of the cluster.  ldmatrix calls this once per
/// matrix, with 8 lanes.
void watch_shared(Warp &, const Instruction &, Lanes, const uint32_t *addresses, uint32_t bytes,
                  Access);

struct MemoryRun {
  uint64_t address;
  uint64_t bytes;
  int lane = -1;  ///< requesting lane; -1 if there is no single one
};
/// Records contiguous global accesses of a bulk copy, or of lanes with different sizes.
void watch_bulk_global(Warp &, const Instruction &, std::span<const MemoryRun>, Access);
/// Records an access of the async proxy (TMA, wgmma) to shared memory; bank conflicts are not
/// counted.
void watch_bulk_shared(Warp &, const Instruction &, Block &, uint32_t offset, uint32_t bytes,
                       Access);

}  // namespace softgpu
