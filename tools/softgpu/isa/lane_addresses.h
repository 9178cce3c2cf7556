// From the address operand of ld, st, atom and cp.async to the memory of this process, for a warp
// at a time.
#pragma once

#include <cstdint>

#include "tools/softgpu/isa/count_access.h"
#include "tools/softgpu/machine/block.h"
#include "tools/softgpu/machine/global_memory.h"
#include "tools/softgpu/machine/lanes.h"
#include "tools/softgpu/machine/shared_memory.h"
#include "tools/softgpu/machine/warp.h"
#include "tools/softgpu/program/decoder.h"
#include "tools/softgpu/program/instruction.h"
#include "tools/softgpu/program/kernel_counters.h"
#include "tools/softgpu/program/program.h"

namespace softgpu {

/// State spaces (PTX ISA, State Spaces); constant memory lies with global memory, and has a cache of its own.
enum class Space : uint8_t {
  kGeneric,
  kGlobal,
  kConstant,
  kShared,
  kSharedCluster,
  kLocal,
  kParameter
};

/// The space that an instruction names, kGeneric if none.
Space space_of(const Decoder &);

/// [%r + 4].
struct AddressOperand {
  int32_t offset;
  RegisterSlot base;
  uint8_t width;  ///< of the base: 4 or 8
};
AddressOperand decode_address(Decoder &, const ptx::Operand &);

/// An address for each lane, of any space, or a place in this process.
struct alignas(64) LaneAddresses {
  uint64_t of[kWarpSize];
};

/// The addresses of an operand.  A lane that is not in the set has that of a lane that is, so that
/// loops over all lanes do no harm.
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

/// True if `bytes` at each of the addresses are inside of a range.
inline bool are_inside(const LaneAddresses &addresses, uint64_t begin, uint64_t size,
                       uint32_t bytes) {
  // A distance is in [0, last] if neither it nor last less it is negative.  Signs are gathered, as
  // vector instructions before AVX-512 do not compare numbers of 64 bits without one.
  const uint64_t last = size - bytes;
  uint64_t signs = 0;
  for (int l = 0; l < kWarpSize; l++) {
    const uint64_t distance = addresses.of[l] - begin;
    signs |= distance | (last - distance);
  }
  return signs >> 63 == 0;
}

/// True if each lane is at the place where its predecessor's bytes end.
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

// Each of these checks the addresses of one space, and makes them places in this process.  They
// fault for the first lane that touches what it must not touch.  First, what is to be tried if not
// all lanes touch what the fast ones expect.

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

/// Of the own block.
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

/// The lanes whose addresses, not yet places, are in shared memory.
Lanes lanes_in_shared(Space, const LaneAddresses &);

/// Hands addresses, not yet places, of any space to those who watch.
void watch_lanes(Warp &, const Instruction &, Lanes, Space, const LaneAddresses &, uint32_t bytes,
                 Access);

/// Of any space.
void locate(Warp &, const Instruction &, Lanes, Space, LaneAddresses *, uint32_t bytes, Access);

}  // namespace softgpu
