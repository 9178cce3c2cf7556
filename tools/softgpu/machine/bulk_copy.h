// A bulk copy under way: cp.async.bulk and cp.reduce.async.bulk, with a tensor map or without.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/softgpu/machine/race_clock.h"
#include "tools/softgpu/machine/tensor_box.h"
#include "tools/softgpu/program/instruction.h"

namespace softgpu {

struct Block;
struct Cluster;
struct Warp;

enum class BulkKind : uint8_t { kLoad, kStore, kReduce };

struct BulkCopy {
  BulkKind kind = BulkKind::kLoad;
  Block *block = nullptr;  ///< that issued it
  Warp *warp = nullptr;
  const Instruction *at = nullptr;
  int lane = 0;
  uint32_t group = 0;  ///< of a store: bulk group of the lane
  /// As it was when the copy was issued.  A copy without a tensor is one of a row of bytes, and has a map for that.
  TensorMap map;
  BoxPlace place;
  uint32_t num_bytes = 0;           ///< in shared memory
  uint32_t smem = 0, mbarrier = 0;  ///< shared addresses
  uint32_t multicast = 0;           ///< ranks that a load lands in
  bool has_read = false;            ///< a store has read shared memory
  uint32_t fenced = 0;              ///< of the lane, at the issue
  SharedClock issued;               ///< what was known when it was issued, for SOFTGPU_RACECHECK
  std::vector<std::byte> data;      ///< what a store has read
};

/// Takes over a copy that is complete but for what it has of its lane: checks its shared memory, and poisons it before a
/// load.  It lands at once if options().completion says so.
void issue_bulk_copy(Warp &, const Instruction &, int lane, BulkCopy);

/// Performs a copy; a store only as far as reading, unless `fully`.  A finished one is taken off.
void land_bulk_copy(Cluster &, size_t index, bool fully);
/// Before the warp goes: its stores have read, and what is left is performed.
void finish_bulk_copies(Warp &);
/// Lets one copy make progress: any if `may_choose`, else one on which somebody could wait.  False if there is none.
bool advance_bulk_copies(Cluster &, bool may_choose);

}  // namespace softgpu
