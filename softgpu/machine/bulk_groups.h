// cp.async.bulk groups and async proxy fences of the lanes of a warp.
#pragma once

#include <array>
#include <cstdint>

#include "softgpu/program/instruction.h"

namespace softgpu {

struct BulkGroups {
  std::array<uint32_t, kWarpSize> num_committed{};
  std::array<uint32_t, kWarpSize>
      fenced{};  ///< value of SharedMemory::fence() at the lane's last fence.proxy.async
};

}  // namespace softgpu
