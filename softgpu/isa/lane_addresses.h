// Address operands of ld, st, atom and cp.async, and their translation to process memory for a
// complete warp.
#pragma once

#include <cstdint>
#include <span>

#include "softgpu/machine/block.h"
#include "softgpu/machine/global_memory.h"
#include "softgpu/machine/lanes.h"
#include "softgpu/machine/shared_memory.h"
#include "softgpu/machine/warp.h"
#include "softgpu/options.h"
#include "softgpu/program/decoder.h"
#include "softgpu/program/instruction.h"
#include "softgpu/program/kernel_counters.h"
#include "softgpu/program/program.h"

namespace softgpu {

// Observation of memory accesses: traffic counters (SOFTGPU_COUNT) and reads of uninitialized
// memory (SOFTGPU_INITCHECK).  load_store.h checks races, for which the lane of each access is
// needed.
//
// Decoders that support observation check watches_memory(), so unobserved instructions have no
// overhead.

enum class Access : uint8_t { kRead, kWrite, kUpdate };

inline bool watches_memory() {
  return options().counts_memory || options().checks_initialised || options().checks_races;
}

/// Counts a request of a warp and its bytes; always enabled.
inline void count_bytes(Warp &warp, const Instruction &i, uint64_t bytes) {
  AccessCount &count = warp.tally->accesses[warp.program->index_of(i)];
  count.requests++;
  count.bytes += bytes;
}

// The following functions have no effect unless watches_memory(), and do not call count_bytes.

/// Records an access of each lane to `bytes` bytes at its address in global memory.
void watch_global(Warp &, const Instruction &, Lanes, const uint64_t *addresses, uint32_t bytes,
                  Access);
/// Records an access to shared memory, in any block of the cluster.  ldmatrix calls this once per
/// matrix, with 8 lanes.
void watch_shared(Warp &, const Instruction &, Lanes, const uint32_t *addresses, uint32_t bytes,
                  Access);

/// Returns the shared memory of a block of the cluster, or null.
SharedMemory *memory_at(Warp &, uint32_t address);

struct MemoryRun {
  uint64_t address;
  uint64_t bytes;
  int lane = -1;  ///< requesting lane; -1 if there is no single one
};
/// Records contiguous global accesses of a bulk copy, or of lanes with different sizes.
void watch_bulk_global(Warp &, const Instruction &, std::span<const MemoryRun>, Access);
/// Records an access of the async proxy (TMA, wgmma) to shared memory; bank conflicts are not
/// counted.
void watch_bulk_shared(Warp &, const Instruction &, Block &, uint32_t offset, uint32_t bytes,
                       Access);

/// State spaces (PTX ISA, State Spaces).  Constant memory is global memory with a separate cache.
enum class Space : uint8_t {
  kGeneric,
  kGlobal,
  kConstant,
  kShared,
  kSharedCluster,
  kLocal,
  kParameter
};

/// Returns the space in the opcode; kGeneric if there is none.
Space space_of(const Decoder &);

/// Operand such as [%r + 4].
struct AddressOperand {
  int32_t offset;
  RegisterSlot base;
  uint8_t width;  ///< width of the base: 4 or 8
};
AddressOperand decode_address(Decoder &, const ptx::Operand &);

/// One address per lane, in any space, or one host address per lane.
struct alignas(64) LaneAddresses {
  uint64_t of[kWarpSize];
};

/// Computes the addresses of an operand.  Lanes outside the set receive the address of a lane of
/// the set, so that loops may cover all lanes.
inline void read_addresses(Warp &warp, Lanes lanes, const AddressOperand &operand,
                           LaneAddresses *to) {
  uint64_t *const address = to->of;
  if (operand.width == 8) {
    const uint64_t *base = warp.row<uint64_t>(operand.base);
    const uint64_t offset = static_cast<uint64_t>(int64_t{operand.offset});
    for (int l = 0; l < kWarpSize; l++) address[l] = base[l] + offset;
  } else {
    const uint32_t *base = warp.row<uint32_t>(operand.base);
    const uint32_t offset = static_cast<uint32_t>(operand.offset);
    for (int l = 0; l < kWarpSize; l++) address[l] = base[l] + offset;
  }
  if (lanes == kAllLanes) return;
  const uint64_t inside = address[first_lane(lanes)];
  for (int l = 0; l < kWarpSize; l++) address[l] = lanes >> l & 1 ? address[l] : inside;
}

/// Returns whether `bytes` bytes at each address are within a range.
inline bool are_inside(const LaneAddresses &addresses, uint64_t begin, uint64_t size,
                       uint32_t bytes) {
  // A distance d is in [0, last] if neither d nor last - d is negative.  The signs are combined,
  // because vector instructions before AVX-512 have no unsigned 64-bit comparison.
  const uint64_t last = size - bytes;
  uint64_t signs = 0;
  for (int l = 0; l < kWarpSize; l++) {
    const uint64_t distance = addresses.of[l] - begin;
    signs |= distance | (last - distance);
  }
  return signs >> 63 == 0;
}

/// Returns whether the access of each lane begins at the end of the previous lane's access.
inline bool are_consecutive(const LaneAddresses &addresses, uint32_t bytes) {
  const uint64_t first = addresses.of[0];
  uint64_t differences = 0;
  for (int l = 0; l < kWarpSize; l++)
    differences |= addresses.of[l] ^ (first + static_cast<uint32_t>(l) * bytes);
  return differences == 0;
}

/// Faults unless the addresses are multiples of `bytes`, a power of two.
[[noreturn]] void fault_misaligned(Warp &, const Instruction &, Lanes, const LaneAddresses &,
                                   uint32_t bytes);
inline void check_alignment(Warp &warp, const Instruction &i, Lanes lanes,
                            const LaneAddresses &addresses, uint32_t bytes) {
  uint64_t bits = 0;
  for (int l = 0; l < kWarpSize; l++) bits |= addresses.of[l];
  if (bits & (bytes - 1)) [[unlikely]]
    fault_misaligned(warp, i, lanes, addresses, bytes);
}

// Each locate function checks addresses of one space and converts them to host addresses.  It
// faults for the first lane with an invalid access.  The locate_each functions are the slow paths,
// for accesses outside the range that the fast paths expect.

void locate_each_global(Warp &, const Instruction &, Lanes, LaneAddresses *, uint32_t bytes,
                        Access);
void locate_each_shared(Warp &, const Instruction &, Lanes, LaneAddresses *, uint32_t bytes,
                        Access);
void note_shared_writes(Warp &, Lanes, const LaneAddresses &, uint32_t bytes);

inline bool are_in_touched(Warp &warp, const Instruction &i, const LaneAddresses &addresses,
                           uint32_t bytes) {
  const TouchedRange &range = warp.tally->touched[warp.program->index_of(i)];
  return are_inside(addresses, range.begin, range.size, bytes);
}

inline void locate_global(Warp &warp, const Instruction &i, Lanes lanes, LaneAddresses *addresses,
                          uint32_t bytes, Access access) {
  if (!are_in_touched(warp, i, *addresses, bytes)) [[unlikely]]
    locate_each_global(warp, i, lanes, addresses, bytes, access);
}

/// Locates addresses in the shared memory of the block.
inline void locate_shared(Warp &warp, const Instruction &i, Lanes lanes, LaneAddresses *addresses,
                          uint32_t bytes, Access access) {
  SharedMemory &smem = warp.block->smem;
  const uint64_t own = uint64_t{smem.rank()} << kRankShift;
  if (!are_inside(*addresses, own + kReservedSmem, smem.size(), bytes)) [[unlikely]]
    return locate_each_shared(warp, i, lanes, addresses, bytes, access);
  if (access != Access::kRead && smem.watches_proxies())
    note_shared_writes(warp, lanes, *addresses, bytes);
  const uint64_t origin = reinterpret_cast<uint64_t>(smem.at(0)) - own;
  for (int l = 0; l < kWarpSize; l++) addresses->of[l] += origin;
}

/// Returns the lanes whose untranslated addresses are in shared memory.
Lanes lanes_in_shared(Space, const LaneAddresses &);

/// Reports untranslated addresses in any space to the counters and the initialization check.
void watch_lanes(Warp &, const Instruction &, Lanes, Space, const LaneAddresses &, uint32_t bytes,
                 Access);

/// Locates addresses in any space.
void locate(Warp &, const Instruction &, Lanes, Space, LaneAddresses *, uint32_t bytes, Access);

}  // namespace softgpu
