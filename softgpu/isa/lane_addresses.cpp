#include "softgpu/isa/lane_addresses.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <vector>

#include "softgpu/machine/faults.h"

namespace softgpu {
namespace {

bool is_in_window(uint64_t address, uint64_t window) {
  return (address & kWindowMask) == window;
}

uint64_t to_place(std::byte *bytes) {
  return reinterpret_cast<uint64_t>(bytes);
}

/// Replaces the addresses by the results of f.  Lanes outside the set receive the result of a lane
/// of the set.
template <class F>
void replace(Lanes lanes, LaneAddresses *addresses, F &&f) {
  for_each_lane(lanes, [&](int l) { addresses->of[l] = f(l, addresses->of[l]); });
  const uint64_t inside = addresses->of[first_lane(lanes)];
  for_each_lane(~lanes, [&](int l) { addresses->of[l] = inside; });
}

uint64_t locate_in_cluster(Warp &warp, const Instruction &i, int lane, uint32_t address,
                           uint32_t bytes, Access access) {
  const SmemPlace place = smem_in_cluster(warp, i, lane, address, bytes);
  // Writes to other blocks are not tracked: the thread that would have to execute the fence is
  // unknown.
  if (access != Access::kRead && place.block == warp.block)
    place.block->smem.note_write(warp.thread_of(lane), place.offset, bytes);
  return to_place(place.bytes);
}

uint64_t locate_local(Warp &warp, const Instruction &i, int lane, uint64_t address,
                      uint32_t bytes) {
  const uint64_t size = warp.program->local_bytes;
  if (address > size || bytes > size - address)
    fault(warp, i, lane, "out of bounds of local memory: %u bytes at %" PRIu64 " of %" PRIu64,
          bytes, address, size);
  return to_place(warp.block->local.data()) + static_cast<uint64_t>(warp.thread_of(lane)) * size +
         address;
}

uint64_t locate_parameter(Warp &warp, const Instruction &i, int lane, uint64_t address,
                          uint32_t bytes) {
  const uint64_t distance = address - to_place(warp.block->grid->parameters);
  const uint64_t size = warp.program->parameter_bytes;
  if (distance > size || bytes > size - distance)
    fault(warp, i, lane, "outside of the parameters: %u bytes at %" PRId64 " of %" PRIu64, bytes,
          static_cast<int64_t>(distance), size);
  return address;
}

uint64_t locate_generic(Warp &warp, const Instruction &i, int lane, uint64_t address,
                        uint32_t bytes, Access access) {
  if (is_in_window(address, kSharedWindow))
    return locate_in_cluster(warp, i, lane, static_cast<uint32_t>(address), bytes, access);
  if (is_in_window(address, kLocalWindow))
    return locate_local(warp, i, lane, address - kLocalWindow, bytes);
  return to_place(global_at(warp, i, lane, address, bytes, access != Access::kRead));
}

bool are_in_window(const LaneAddresses &addresses, uint64_t window) {
  return std::all_of(std::begin(addresses.of), std::end(addresses.of),
                     [&](uint64_t a) { return is_in_window(a, window); });
}

bool are_in_own_block(Warp &warp, const LaneAddresses &addresses) {
  return std::all_of(std::begin(addresses.of), std::end(addresses.of), [&](uint64_t a) {
    return static_cast<uint32_t>(a) >> kRankShift == warp.block->rank;
  });
}

}  // namespace

Space space_of(const Decoder &decoder) {
  static constexpr std::pair<std::string_view, Space> kSpaces[] = {
      {"global", Space::kGlobal},
      {"const", Space::kConstant},
      {"shared", Space::kShared},
      {"shared::cta", Space::kShared},
      {"shared::cluster", Space::kSharedCluster},
      {"local", Space::kLocal},
      {"param", Space::kParameter},
      {"param::entry", Space::kParameter},
      {"param::func", Space::kLocal},
  };
  for (const auto &[name, space] : kSpaces)
    if (decoder.has(name)) return space;
  return Space::kGeneric;
}

AddressOperand decode_address(Decoder &decoder, const ptx::Operand &operand) {
  const Address address = decoder.address(operand);
  const int32_t offset = static_cast<int32_t>(address.offset);
  if (offset != address.offset) decoder.unknown("an offset of more than 32 bits");
  return {offset, address.base, address.width};
}

void fault_misaligned(Warp &warp, const Instruction &i, Lanes lanes, const LaneAddresses &addresses,
                      uint32_t bytes) {
  const Lanes wrong = lanes & lanes_where([&](int l) { return addresses.of[l] % bytes != 0; });
  const int lane = first_lane(wrong);
  fault(FaultKind::kMisaligned, warp, i, lane, "misaligned address %#" PRIx64 " for %u bytes",
        addresses.of[lane], bytes);
}

void note_shared_writes(Warp &warp, Lanes lanes, const LaneAddresses &addresses, uint32_t bytes) {
  uint32_t offsets[kWarpSize];
  for (int l = 0; l < kWarpSize; l++)
    offsets[l] = static_cast<uint32_t>(addresses.of[l]) & kOffsetMask;
  warp.block->smem.note_writes(warp.first_thread(), lanes, offsets, bytes);
}

void locate_each_global(Warp &warp, const Instruction &i, Lanes lanes, LaneAddresses *addresses,
                        uint32_t bytes, Access access) {
  replace(lanes, addresses, [&](int lane, uint64_t address) {
    return to_place(global_at(warp, i, lane, address, bytes, access != Access::kRead));
  });
}

void locate_each_shared(Warp &warp, const Instruction &i, Lanes lanes, LaneAddresses *addresses,
                        uint32_t bytes, Access access) {
  replace(lanes, addresses, [&](int lane, uint64_t address) {
    shared_at(warp, i, lane, static_cast<uint32_t>(address), bytes);
    return locate_in_cluster(warp, i, lane, static_cast<uint32_t>(address), bytes, access);
  });
}

Lanes lanes_in_shared(Space space, const LaneAddresses &addresses) {
  if (space == Space::kShared || space == Space::kSharedCluster) return kAllLanes;
  if (space != Space::kGeneric) return 0;
  return lanes_where([&](int l) { return is_in_window(addresses.of[l], kSharedWindow); });
}

void watch_lanes(Warp &warp, const Instruction &i, Lanes lanes, Space space,
                 const LaneAddresses &addresses, uint32_t bytes, Access access) {
  if (space == Space::kLocal || space == Space::kParameter || space == Space::kConstant) return;
  const Lanes shared = lanes & lanes_in_shared(space, addresses);
  const Lanes local =
      lanes_where([&](int l) { return is_in_window(addresses.of[l], kLocalWindow); });
  const Lanes global = lanes & ~shared & ~local;

  if (global != 0) watch_global(warp, i, global, addresses.of, bytes, access);
  if (shared == 0) return;
  uint32_t in_window[kWarpSize];
  for (int l = 0; l < kWarpSize; l++) in_window[l] = static_cast<uint32_t>(addresses.of[l]);
  watch_shared(warp, i, shared, in_window, bytes, access);
}

void locate(Warp &warp, const Instruction &i, Lanes lanes, Space space, LaneAddresses *addresses,
            uint32_t bytes, Access access) {
  switch (space) {
    case Space::kGlobal:
    case Space::kConstant:
      return locate_global(warp, i, lanes, addresses, bytes, access);
    case Space::kShared:
      return locate_shared(warp, i, lanes, addresses, bytes, access);
    case Space::kSharedCluster:
      if (are_in_own_block(warp, *addresses))
        return locate_shared(warp, i, lanes, addresses, bytes, access);
      return replace(lanes, addresses, [&](int lane, uint64_t address) {
        return locate_in_cluster(warp, i, lane, static_cast<uint32_t>(address), bytes, access);
      });
    case Space::kLocal:
      if (are_inside(*addresses, 0, warp.program->local_bytes, bytes)) {
        const uint64_t size = warp.program->local_bytes;
        const uint64_t first =
            to_place(warp.block->local.data()) + static_cast<uint64_t>(warp.first_thread()) * size;
        for (uint64_t l = 0; l < kWarpSize; l++) addresses->of[l] += first + l * size;
        return;
      }
      return replace(lanes, addresses, [&](int lane, uint64_t address) {
        return locate_local(warp, i, lane, address, bytes);
      });
    case Space::kParameter: {
      const uint64_t begin = to_place(warp.block->grid->parameters);
      if (are_inside(*addresses, begin, warp.program->parameter_bytes, bytes)) return;
      return replace(lanes, addresses, [&](int lane, uint64_t address) {
        return locate_parameter(warp, i, lane, address, bytes);
      });
    }
    case Space::kGeneric:
      if (are_in_touched(warp, i, *addresses, bytes)) return;
      if (are_in_window(*addresses, kSharedWindow)) {
        for (uint64_t &a : addresses->of) a -= kSharedWindow;
        return locate(warp, i, lanes, Space::kSharedCluster, addresses, bytes, access);
      }
      return replace(lanes, addresses, [&](int lane, uint64_t address) {
        return locate_generic(warp, i, lane, address, bytes, access);
      });
  }
}

// ---- counters

namespace {

// Source: CUDA C++ Best Practices Guide, Coalesced Access to Global Memory, and Shared Memory and
// Memory Banks.
constexpr uint64_t kSectorBytes = 32, kNumBanks = 32;
constexpr uint32_t kBankBytes = 4;
/// Bytes per shared memory wavefront; requests of 8 or 16 bytes per lane are split into two or four
/// parts.
constexpr uint32_t kWavefrontBytes = 128;

AccessCount &count_of(Warp &warp, const Instruction &i) {
  return warp.tally->accesses[warp.program->index_of(i)];
}

uint64_t divide_up(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

/// Returns the distinct values of the lanes in order; they usually are sorted already.
template <class T>
std::span<T> distinct(Lanes lanes, const T *values, T (&memory)[kWarpSize]) {
  T *end = memory;
  for_each_lane(lanes, [&](int l) { *end++ = values[l]; });
  if (!std::is_sorted(memory, end)) std::sort(memory, end);
  return {memory, std::unique(memory, end)};
}

/// Counts sectors.  Lanes with equal addresses count once; other lanes do not overlap, because
/// addresses are multiples of `bytes`.
void count_sectors(AccessCount &count, Lanes lanes, const uint64_t *addresses, uint32_t bytes) {
  uint64_t memory[kWarpSize], counted = 0;  // sectors before `counted` are counted
  const auto places = distinct(lanes, addresses, memory);
  for (const uint64_t address : places) {
    const uint64_t end = divide_up(address + bytes, kSectorBytes);
    count.sectors += end - std::min(end, std::max(address / kSectorBytes, counted));
    counted = end;
  }
  count.global_bytes += places.size() * bytes;
  count.least_sectors += divide_up(places.size() * bytes, kSectorBytes);
}

/// Counts passes over the banks: the maximum number of distinct words in one bank.  Lanes that read
/// the same word need one pass.
void count_wavefronts(AccessCount &count, Lanes lanes, const uint32_t *addresses, uint32_t bytes) {
  const uint32_t unit = std::max(bytes, kBankBytes), lanes_at_once = kWavefrontBytes / unit;
  uint32_t units[kWarpSize];
  for_each_lane(lanes, [&](int l) { units[l] = addresses[l] / unit; });
  for (uint32_t first = 0; first < kWarpSize; first += lanes_at_once) {
    const Lanes together = lanes & kAllLanes >> (kWarpSize - lanes_at_once) << first;
    uint32_t memory[kWarpSize];
    std::array<uint32_t, kNumBanks> in_slot{};  // a slot has as many banks as a unit has words
    const auto accessed = distinct(together, units, memory);
    for (const uint32_t x : accessed) in_slot[x % lanes_at_once]++;
    count.shared_bytes += accessed.size() * unit;
    count.wavefronts += *std::ranges::max_element(in_slot);
    count.least_wavefronts += divide_up(accessed.size() * unit, kWavefrontBytes);
  }
}

/// Uninitialized bytes that lanes of one request read.
class Unwritten {
 public:
  void add(int lane, const UnwrittenBytes &found) {
    if (found.count == 0) return;
    if (count_ == 0) {
      first_ = found.first;
      lane_ = lane;
    }
    count_ += found.count;
  }
  void report(Warp &warp, const Instruction &i, uint64_t bytes, const char *where) const {
    if (count_ == 0) return;
    violation(warp, i, lane_,
              "uninitialized read: %" PRIu64 " of %" PRIu64
              " bytes of %s memory were never written, the first at %#" PRIx64,
              count_, bytes, where, first_);
  }

 private:
  uint64_t count_ = 0, first_ = 0;
  int lane_ = -1;
};

}  // namespace

SharedMemory *memory_at(Warp &warp, uint32_t address) {
  const auto &blocks = warp.block->cluster->blocks;
  const uint32_t rank = address >> kRankShift;
  return rank < blocks.size() ? &blocks[rank]->smem : nullptr;
}

void watch_global(Warp &warp, const Instruction &i, Lanes lanes, const uint64_t *addresses,
                  uint32_t bytes, Access access) {
  if (options().counts_memory) count_sectors(count_of(warp, i), lanes, addresses, bytes);
  if (!options().checks_initialised) return;
  Unwritten unwritten;
  for_each_lane(lanes, [&](int l) {
    if (access != Access::kWrite) unwritten.add(l, find_unwritten(addresses[l], bytes));
    if (access != Access::kRead) note_written(addresses[l], bytes);
  });
  unwritten.report(warp, i, static_cast<uint64_t>(num_lanes(lanes)) * bytes, "global");
}

void watch_shared(Warp &warp, const Instruction &i, Lanes lanes, const uint32_t *addresses,
                  uint32_t bytes, Access access) {
  if (options().counts_memory) count_wavefronts(count_of(warp, i), lanes, addresses, bytes);
  if (!options().checks_initialised) return;
  Unwritten unwritten;
  for_each_lane(lanes, [&](int l) {
    SharedMemory *smem = memory_at(warp, addresses[l]);
    const uint32_t offset = addresses[l] & kOffsetMask;
    if (smem == nullptr || !smem->holds(offset, bytes)) return;
    WrittenBytes &written = smem->written();
    if (access != Access::kWrite) unwritten.add(l, written.find_unwritten(offset, bytes));
    if (access != Access::kRead) written.set(offset, bytes);
  });
  unwritten.report(warp, i, static_cast<uint64_t>(num_lanes(lanes)) * bytes, "shared");
}

void watch_bulk_global(Warp &warp, const Instruction &i, std::span<const MemoryRun> runs,
                       Access access) {
  if (options().counts_memory) {
    AccessCount &count = count_of(warp, i);
    std::vector<MemoryRun> sorted(runs.begin(), runs.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const MemoryRun &x, const MemoryRun &y) { return x.address < y.address; });
    uint64_t bytes = 0, distinct = 0, end = 0;  // bytes before `end` are in `distinct`
    uint64_t counted = 0;                       // sectors before `counted` are counted
    for (const MemoryRun &run : sorted) {
      if (run.bytes == 0) continue;
      const uint64_t first = std::max(run.address, end);
      end = std::max(end, run.address + run.bytes);
      distinct += end - std::min(first, end);
      const uint64_t begin = std::max(run.address / kSectorBytes, counted);
      counted = std::max(counted, divide_up(run.address + run.bytes, kSectorBytes));
      count.sectors += counted - std::min(begin, counted);
      bytes += run.bytes;
    }
    count.global_bytes += bytes;
    count.least_sectors += divide_up(distinct, kSectorBytes);
  }
  if (!options().checks_initialised) return;
  Unwritten unwritten;
  uint64_t bytes = 0;
  for (const MemoryRun &run : runs) {
    if (access != Access::kWrite) unwritten.add(run.lane, find_unwritten(run.address, run.bytes));
    if (access != Access::kRead) note_written(run.address, run.bytes);
    bytes += run.bytes;
  }
  unwritten.report(warp, i, bytes, "global");
}

void watch_bulk_shared(Warp &warp, const Instruction &i, Block &block, uint32_t offset,
                       uint32_t bytes, Access access) {
  if (!options().checks_initialised) return;
  WrittenBytes &written = block.smem.written();
  Unwritten unwritten;
  if (access != Access::kWrite) unwritten.add(-1, written.find_unwritten(offset, bytes));
  if (access != Access::kRead) written.set(offset, bytes);
  unwritten.report(warp, i, bytes, "shared");
}

}  // namespace softgpu
