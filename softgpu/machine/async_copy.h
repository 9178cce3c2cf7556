// cp.async: asynchronous copies of 4, 8 or 16 bytes from global to shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "softgpu/program/instruction.h"

namespace softgpu {

struct Warp;

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
