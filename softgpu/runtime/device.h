// Devices of the process.
#pragma once

#include <cstdint>

#include "softgpu/machine/occupancy.h"
#include "softgpu/machine/peers.h"
#include "softgpu/runtime/api.h"

namespace softgpu::runtime {

/// Fixed limits of an architecture; options.h has the configurable ones.
struct DeviceLimits : SmLimits {
  const char *name;
  int l2_bytes;
  int clock_khz, memory_clock_khz, memory_bus_bits;
};
const DeviceLimits &device_limits();

constexpr int kMaxThreadsPerBlock = 1024;
constexpr uint32_t kMaxBlockDim[3] = {1024, 1024, 64};
constexpr uint32_t kMaxGridDim[3] = {0x7FFFFFFF, 65535, 65535};
constexpr int kSmemWithoutOptIn = 48 * 1024;

void set_current_device(int device);

}  // namespace softgpu::runtime
