// cp.async: copies of 4, 8 or 16 bytes from global to shared memory that land later.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/softgpu/program/instruction.h"

namespace softgpu {

struct Warp;

struct SmallCopy {
  uint64_t source;
  uint32_t destination;
  uint32_t group;
  uint8_t lane, bytes, valid_bytes;  ///< the rest is filled with 0
};

struct CopyGroups {
  std::vector<SmallCopy> pending;
  std::array<uint32_t, kWarpSize> num_committed{};
};

/// Lands one copy, and takes it off.
void land_copy(Warp &, size_t index);
/// Lands the copies of all but the newest `num_pending` groups of each of these lanes: cp.async.wait_group.
void land_groups(Warp &, Lanes, uint32_t num_pending);
/// Lands all copies of these lanes, committed or not: cp.async.wait_all.
void land_all_copies(Warp &, Lanes);
/// Lands what must have landed before the warp ends.
void finish_copies(Warp &);

}  // namespace softgpu
