// cp.async.bulk groups of a warp's lanes, and when the lanes have fenced the async proxy.
#pragma once

#include <array>
#include <cstdint>

#include "tools/softgpu/program/instruction.h"

namespace softgpu {

struct BulkGroups {
  std::array<uint32_t, kWarpSize> num_committed{};
  std::array<uint32_t, kWarpSize>
      fenced{};  ///< SharedMemory::fence() of the lane's last fence.proxy.async
};

}  // namespace softgpu
