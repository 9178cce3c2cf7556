// cp.async: asynchronous copies of 4, 8 or 16 bytes from global to shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "softgpu/machine/race_clock.h"
#include "softgpu/machine/tensor_map.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

struct Block;
struct Cluster;

enum class BulkKind : uint8_t { kLoad, kStore };

struct BulkCopy {
  BulkKind kind = BulkKind::kLoad;
  Block *block = nullptr;  ///< issuing block
  Warp *warp = nullptr;
  const Instruction *at = nullptr;
  int lane = 0;
  uint32_t group = 0;  ///< bulk group of the lane, for a store
  /// Tensor map at the time of the issue.  A copy without a tensor has a map of one row of bytes.
  TensorMap map;
  BoxPlace place;
  uint32_t num_bytes = 0;           ///< size in shared memory
  uint32_t smem = 0, mbarrier = 0;  ///< shared addresses
  uint32_t multicast = 0;           ///< destination ranks of a load
  bool has_read = false;            ///< a store has read shared memory
  uint32_t fenced = 0;              ///< last proxy fence of the lane before the issue
  SharedClock issued;               ///< clock of the issue, for SOFTGPU_RACECHECK
  std::vector<std::byte> data;      ///< data that a store has read
};

/// Starts a copy: sets the fields that depend on the lane, checks the shared memory, and poisons
/// the destination of a load.  Completes it immediately if options().completion requires it.
void issue_bulk_copy(Warp &, const Instruction &, int lane, BulkCopy);

/// Executes a copy and removes it when complete.  A store only reads unless `fully` is set.
void land_bulk_copy(Cluster &, size_t index, bool fully);
/// Completes the stores of a warp that ends, and reports those that have not read shared memory.
void finish_bulk_copies(Warp &);
/// Advances one copy: a random one if `may_choose`, otherwise one that a thread may wait for.
/// Returns whether a copy has advanced.
bool advance_bulk_copies(Cluster &, bool may_choose);

struct BulkGroups {
  std::array<uint32_t, kWarpSize> num_committed{};
  std::array<uint32_t, kWarpSize>
      fenced{};  ///< value of SharedMemory::fence() at the lane's last fence.proxy.async
};

struct SmallCopy {
  uint64_t source;
  uint32_t destination;
  uint32_t group;
  uint8_t lane, bytes, valid_bytes;  ///< the remaining bytes are filled with 0
};

struct CopyGroups {
  std::vector<SmallCopy> pending;
  std::array<uint32_t, kWarpSize> num_committed{};
};

/// Completes and removes one copy.
void land_copy(Warp &, size_t index);
/// cp.async.wait_group: completes the copies of all groups of these lanes except the `num_pending`
/// newest.
void land_groups(Warp &, Lanes, uint32_t num_pending);
/// cp.async.wait_all: completes all copies of these lanes, committed or not.
void land_all_copies(Warp &, Lanes);
/// Completes the copies that are pending when the warp ends.
void finish_copies(Warp &);

}  // namespace softgpu
