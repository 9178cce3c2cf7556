// The devices of the process.
#pragma once

#include <cstdint>

#include "tools/softgpu/machine/peers.h"
#include "tools/softgpu/runtime/api.h"

namespace softgpu::runtime {

/// What devices of an architecture have; options.h has what can be chosen.
struct DeviceLimits {
  const char *name;
  int threads_per_sm, blocks_per_sm, registers_per_sm;
  int smem_per_sm, reserved_smem;  ///< bytes; of the latter, of each block
  int l2_bytes;
  int clock_khz, memory_clock_khz, memory_bus_bits;
};
const DeviceLimits &device_limits();

constexpr int kMaxThreadsPerBlock = 1024;
constexpr uint32_t kMaxBlockDim[3] = {1024, 1024, 64};
constexpr uint32_t kMaxGridDim[3] = {0x7FFFFFFF, 65535, 65535};
constexpr int kSmemWithoutOptIn = 48 * 1024;
constexpr int kRegistersPerThread = 255;

void set_current_device(int device);

}  // namespace softgpu::runtime
