// Global memory: memory of this process, at the same address on device and host.  Kernels may
// access the allocations of the runtime.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "softgpu/machine/shared_memory.h"
#include "softgpu/program/instruction.h"

namespace softgpu {

constexpr int kMaxDevices = 64;

/// Bit mask, per device, of the other devices whose memory its kernels may access.
inline std::array<std::atomic<uint64_t>, kMaxDevices> reachable_peers;

inline bool may_reach(int device, int other) {
  return device == other || (reachable_peers[static_cast<size_t>(device)] >> other & 1) != 0;
}

/// Generic address windows of shared and local memory; no process has memory at these addresses.
constexpr uint64_t kSharedWindow = 0xF500000000000000, kLocalWindow = 0xF600000000000000;
constexpr uint64_t kWindowMask = 0xFF00000000000000;

enum class MemoryKind : uint8_t { kDevice, kMappedHost, kVariable };

struct Allocation {
  uint64_t begin = 0, size = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  std::string name;  ///< for messages: "a cudaMalloc", or the name of the variable

  bool holds(uint64_t address, uint64_t bytes) const {
    return address - begin <= size && bytes <= size - (address - begin);
  }
};

/// Thread-safe.  Memory must not be removed while a kernel that may access it runs.
void add_allocation(const Allocation &);
std::optional<Allocation> remove_allocation(uint64_t begin);
std::optional<Allocation> find_allocation(uint64_t address);

/// Returns "byte 4 of a cudaMalloc" for a global address.
std::string name_byte(uint64_t address);

/// Marks global memory as written by the host or the device.  No effect without
/// options().checks_initialised.
void note_written(uint64_t address, uint64_t bytes);
/// Updates the initialization state after the host has copied global memory.
void note_copied(uint64_t to, uint64_t from, uint64_t bytes);
/// Returns the uninitialized bytes of a range of device memory; none for other memory.
UnwrittenBytes find_unwritten(uint64_t address, uint64_t bytes);

/// Returns the host pointer for a global address, or faults with a description of the nearest
/// allocations.  Records the allocation in the counters of the instruction.
std::byte *global_at(Warp &, const Instruction &, int lane, uint64_t address, uint32_t bytes,
                     bool is_write);

/// Returns the host pointer for an address in the shared memory of the block.  Faults if the range
/// is out of bounds.
std::byte *shared_at(Warp &, const Instruction &, int lane, uint32_t address, uint32_t bytes);

struct Block;
struct SmemPlace {
  Block *block;
  uint32_t offset;
  std::byte *bytes;
};
/// Returns the location of an address in the shared memory of any block of the cluster.
SmemPlace smem_in_cluster(Warp &, const Instruction &, int lane, uint32_t address, uint32_t bytes);

}  // namespace softgpu
