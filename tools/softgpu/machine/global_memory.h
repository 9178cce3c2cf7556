// Global memory is memory of this process: an address on the device is one on the host.  What may be touched is what
// the runtime has allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/softgpu/machine/written_bytes.h"
#include "tools/softgpu/program/instruction.h"

namespace softgpu {

/// Where generic addresses of shared and local memory lie: no process has memory there.
constexpr uint64_t kSharedWindow = 0xF500000000000000, kLocalWindow = 0xF600000000000000;
constexpr uint64_t kWindowMask = 0xFF00000000000000;

enum class MemoryKind : uint8_t { kDevice, kMappedHost, kVariable };

struct Allocation {
  uint64_t begin = 0, size = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  std::string name;  ///< for messages: "a cudaMalloc", or the variable

  bool holds(uint64_t address, uint64_t bytes) const {
    return address - begin <= size && bytes <= size - (address - begin);
  }
};

/// All threads of the process may call these.  Memory is not removed while a kernel runs that may touch it.
void add_allocation(const Allocation &);
std::optional<Allocation> remove_allocation(uint64_t begin);
std::optional<Allocation> find_allocation(uint64_t address);

/// The host or the device has written global memory.  Nothing unless options().checks_initialised.
void note_written(uint64_t address, uint64_t bytes);
/// The host has copied global memory: what nobody wrote at the source, nobody wrote where it lies now.
void note_copied(uint64_t to, uint64_t from, uint64_t bytes);
/// Bytes that nobody wrote, of memory that the device has allocated; of any other memory none.
UnwrittenBytes find_unwritten(uint64_t address, uint64_t bytes);

/// The memory at a global address, or a fault that says what lies near.  Remembers in the tally of the instruction
/// which allocation it was.
std::byte *global_at(Warp &, const Instruction &, int lane, uint64_t address, uint32_t bytes,
                     bool is_write);

/// The memory at a shared address of the own block.  Faults unless the range is inside.
std::byte *shared_at(Warp &, const Instruction &, int lane, uint32_t address, uint32_t bytes);

struct Block;
struct SmemPlace {
  Block *block;
  uint32_t offset;
  std::byte *bytes;
};
/// The same of any block of the cluster.
SmemPlace smem_in_cluster(Warp &, const Instruction &, int lane, uint32_t address, uint32_t bytes);

}  // namespace softgpu
