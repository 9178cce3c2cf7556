// Peer access between devices: cudaDeviceEnablePeerAccess.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace softgpu {

constexpr int kMaxDevices = 64;

/// Bit mask, per device, of the other devices whose memory its kernels may access.
inline std::array<std::atomic<uint64_t>, kMaxDevices> reachable_peers;

inline bool may_reach(int device, int other) {
  return device == other || (reachable_peers[static_cast<size_t>(device)] >> other & 1) != 0;
}

}  // namespace softgpu
