// Where every access to memory passes that somebody watches: what is counted (SOFTGPU_COUNT), and what is checked of
// bytes that nobody wrote (SOFTGPU_INITCHECK).  Races are looked for beside it (race_access.h), where it is known which
// lane touches what.
//
// Instructions that nobody watches do not come here: those that ask watches_memory() when they are decoded pay nothing.
#pragma once

#include <cstdint>
#include <span>

#include "tools/softgpu/machine/warp.h"
#include "tools/softgpu/options.h"
#include "tools/softgpu/program/instruction.h"
#include "tools/softgpu/program/kernel_counters.h"
#include "tools/softgpu/program/program.h"

namespace softgpu {

struct Block;

enum class Access : uint8_t { kRead, kWrite, kUpdate };

inline bool watches_memory() {
  return options().counts_memory || options().checks_initialised || options().checks_races;
}

/// Counts a request of a warp and its bytes, which is done always.
inline void count_bytes(Warp &warp, const Instruction &i, uint64_t bytes) {
  AccessCount &count = warp.tally->accesses[warp.program->index_of(i)];
  count.requests++;
  count.bytes += bytes;
}

// What follows does nothing unless watches_memory(), and is called besides.

/// Each lane of the set touches `bytes` at its address.
void watch_global(Warp &, const Instruction &, Lanes, const uint64_t *addresses, uint32_t bytes,
                  Access);
/// The same of shared memory; an address may be in any block of the cluster.  For an ldmatrix it is called with 8 lanes
/// for each of its matrices.
void watch_shared(Warp &, const Instruction &, Lanes, const uint32_t *addresses, uint32_t bytes,
                  Access);

struct MemoryRun {
  uint64_t address;
  uint64_t bytes;
  int lane = -1;  ///< that asks for it, if it is one
};
/// Runs of global memory, of a bulk copy or of lanes that touch different numbers of bytes.
void watch_bulk_global(Warp &, const Instruction &, std::span<const MemoryRun>, Access);
/// What the async proxy (TMA, wgmma) does to shared memory, whose banks it is not counted against.
void watch_bulk_shared(Warp &, const Instruction &, Block &, uint32_t offset, uint32_t bytes,
                       Access);

}  // namespace softgpu
