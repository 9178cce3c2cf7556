// Tensor maps that are modified on the device: tensormap.replace, tensormap.cp_fenceproxy,
// fence.proxy.tensormap and prefetch.tensormap.  PTX ISA, Tensor Map Proxy and tensormap.replace.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "softgpu/isa/async_checks.h"
#include "softgpu/isa/decode.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/race_check.h"
#include "softgpu/machine/tensor_map.h"

namespace softgpu {
namespace {

constexpr uint32_t kMapBytes = 128;

TensorMap map_at(Warp &warp, const Instruction &i, int lane, uint64_t address) {
  if (address % 64 != 0) fault(warp, i, lane, "misaligned tensor map");
  const auto map = unpack(global_at(warp, i, lane, address, kMapBytes, false));
  if (!map)
    fault(warp, i, lane, "no tensor map at %#llx", static_cast<unsigned long long>(address));
  return *map;
}

// ---- tensormap.replace

/// Type codes of tensormap.replace.
constexpr ElementType kElementTypes[] = {
    ElementType::kU8,     ElementType::kU16, ElementType::kU32,  ElementType::kS32,
    ElementType::kU64,    ElementType::kS64, ElementType::kF16,  ElementType::kF32,
    ElementType::kF32Ftz, ElementType::kF64, ElementType::kBf16, ElementType::kTf32,
    ElementType::kTf32Ftz};

struct Field {
  std::string_view name;
  uint8_t width;           ///< width of the value
  uint8_t num_dimensions;  ///< 0: the field has no dimension
  const char *invalid;     ///< description of an invalid value
  /// Sets the field.  Returns whether the value is valid.
  bool (*set)(TensorMap &, size_t dimension, uint64_t value);
};
constexpr Field kFields[] = {
    {"global_address", 8, 0, "a base that is not 16-byte aligned",
     [](TensorMap &map, size_t, uint64_t x) { return (map.base = x) % 16 == 0; }},
    {"rank", 4, 0, "the rank",  // value is rank - 1
     [](TensorMap &map, size_t, uint64_t x) {
       map.rank = static_cast<uint8_t>(x + 1);
       return x <= 4;
     }},
    {"box_dim", 4, 5, "the box",
     [](TensorMap &map, size_t d, uint64_t x) {
       map.box[d] = static_cast<uint16_t>(x);
       return x >= 1 && x <= 256;
     }},
    {"global_dim", 4, 5, "a dimension of 0",
     [](TensorMap &map, size_t d, uint64_t x) { return (map.sizes[d] = x) >= 1; }},
    {"global_stride", 8, 4, "a stride that is not a multiple of 16",
     [](TensorMap &map, size_t d, uint64_t x) { return (map.strides[d] = x) % 16 == 0; }},
    {"element_stride", 4, 5, "element strides of tiles, which are not supported",
     [](TensorMap &map, size_t d, uint64_t x) {
       map.element_strides[d] = 1;
       return x == 1;
     }},
    {"elemtype", 4, 0, "the type of elements",
     [](TensorMap &map, size_t, uint64_t x) {
       if (x < std::size(kElementTypes)) map.type = kElementTypes[x];
       return x < std::size(kElementTypes);
     }},
    {"interleave_layout", 4, 0, "interleave, which is not supported",
     [](TensorMap &, size_t, uint64_t x) { return x == 0; }},
    {"swizzle_mode", 4, 0, "a swizzle that is not supported",
     [](TensorMap &map, size_t, uint64_t x) {
       map.swizzle = static_cast<Swizzle>(x);
       return x <= 3;
     }},
    {"fill_mode", 4, 0, "the fill mode",
     [](TensorMap &map, size_t, uint64_t x) {
       map.fills_nan = x != 0;
       return x <= 1;
     }},
};

struct Replace {
  AddressOperand address;
  RegisterSlot value;
  const Field *field;
  uint8_t dimension;
  bool is_shared;
};

/// Records a modification, which requires a new release and acquire by the tensormap proxy.
void note_changed(Block &block, uint64_t address, MapChange change) {
  ChangedMaps::get().set(address, change);
  block.acquired_maps.erase(address);
  if (change == MapChange::kMade) block.changed_maps.insert(address);
}

/// Returns the map that tensormap.replace modifies; 128 zero bytes are an empty map.
TensorMap map_to_change(Warp &warp, const Instruction &i, int lane, const std::byte *bytes) {
  if (const auto map = unpack(bytes)) return *map;
  if (std::any_of(bytes, bytes + kMapBytes, [](std::byte x) { return x != std::byte{0}; }))
    fault(warp, i, lane, "tensormap.replace of an invalid tensor map");
  return TensorMap();
}

Step replace(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<Replace>();
  for_each_lane(lanes, [&](int lane) {
    const uint64_t address = address_of(warp, o.address, lane);
    if (address % kMapBytes != 0)
      fault(warp, i, lane, "misaligned tensor map of tensormap.replace");
    std::byte *at = o.is_shared
                        ? shared_at(warp, i, lane, static_cast<uint32_t>(address), kMapBytes)
                        : global_at(warp, i, lane, address, kMapBytes, true);
    TensorMap map = map_to_change(warp, i, lane, at);
    const uint64_t value =
        o.field->width == 8 ? warp.row<uint64_t>(o.value)[lane] : warp.row<uint32_t>(o.value)[lane];
    if (!o.field->set(map, o.dimension, value))
      fault(warp, i, lane, "tensormap.replace with %s: %llu", o.field->invalid,
            static_cast<unsigned long long>(value));
    const auto packed = pack(map);
    std::memcpy(at, packed.data(), packed.size());
    if (o.is_shared)
      warp.block->smem.note_write(warp.thread_of(lane),
                                  static_cast<uint32_t>(address) & kOffsetMask, kMapBytes);
    else
      note_changed(*warp.block, address, MapChange::kMade);
  });
  return Step::kNext;
}

// ---- tensormap proxy

struct CopyMap {
  AddressOperand to, from;
};

/// tensormap.cp_fenceproxy: copies a map from shared to global memory by the complete warp, and
/// releases it.
Step copy_map(Warp &warp, const Instruction &i, Lanes lanes) {
  if (!warp.is_converged()) return Step::kRetry;
  const auto &o = i.as<CopyMap>();
  const int lane = first_lane(lanes);
  const uint64_t to = address_of(warp, o.to, lane);
  const uint32_t from = shared_address_of(warp, o.from, lane);
  if (to % kMapBytes != 0 || from % kMapBytes != 0)
    fault(warp, i, lane, "misaligned tensor map of tensormap.cp_fenceproxy");
  std::memcpy(global_at(warp, i, lane, to, kMapBytes, true),
              shared_at(warp, i, lane, from, kMapBytes), kMapBytes);
  note_written(to, kMapBytes);
  note_changed(*warp.block, to, MapChange::kReleased);
  return Step::kNext;
}

Step acquire_map(Warp &warp, const Instruction &i, Lanes lanes) {
  for_each_lane(lanes, [&](int lane) {
    warp.block->acquired_maps.insert(address_of(warp, i.as<AddressOperand>(), lane));
  });
  return Step::kNext;
}

/// Releases all modifications of the block: a thread after a barrier also releases earlier ones of
/// other threads.
Step release_maps(Warp &warp, const Instruction &, Lanes) {
  ChangedMaps::get().release(warp.block->changed_maps);
  warp.block->changed_maps.clear();
  return Step::kNext;
}

Step prefetch_map(Warp &warp, const Instruction &i, Lanes lanes) {
  for_each_lane(lanes, [&](int lane) {
    map_at(warp, i, lane, address_of(warp, i.as<AddressOperand>(), lane));
  });
  return Step::kNext;
}

// ---- fence.proxy and fence.mbarrier_init

struct AsyncFence {
  bool is_of_shared, is_of_global;
};

Step fence_async(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<AsyncFence>();
  RaceCheck *const races = races_of(warp);
  if (o.is_of_global && races != nullptr) races->fence_proxy(warp, lanes);
  if (!o.is_of_shared) return Step::kNext;
  const uint32_t now = warp.block->smem.fence();
  for_each_lane(lanes, [&](int lane) { warp.bulk.fenced[static_cast<size_t>(lane)] = now; });
  warp.block->unfenced_mbarriers.fence(warp.first_thread(), lanes);
  return Step::kNext;
}

/// Releases initializations to the cluster, including threads that learn of them through relaxed
/// operations.
Step fence_initialisation(Warp &warp, const Instruction &, Lanes lanes) {
  warp.block->unfenced_mbarriers.fence(warp.first_thread(), lanes);
  if (RaceCheck *races = races_of(warp)) races->fence(warp, lanes);
  return Step::kNext;
}

// ---- decoding

/// tensormap.replace.tile.FIELD.SPACE.b1024.TYPE [address]{, dimension}, value
void decode_replace(Decoder &d, Instruction &i) {
  const auto *const field = std::ranges::find(kFields, d.part(3), &Field::name);
  if (field == std::end(kFields)) d.unknown("field of tensormap.replace");
  auto &o = i.make<Replace>();
  o.field = field;
  const bool is_wide = field->width == 8, has_dimension = field->num_dimensions != 0;
  need_form(d,
            "replace tile global|shared::cta b1024 " + std::string(is_wide ? "b64 " : "b32 ") +
                std::string(field->name),
            has_dimension ? 3 : 2);
  o.is_shared = !d.has("global");
  o.address = decode_address(d, d.operands()[0]);
  if (has_dimension) {
    const int64_t dimension = constant_of(d, d.operands()[1]);
    if (dimension < 0 || dimension >= field->num_dimensions)
      d.unknown("dimension of tensormap.replace");
    o.dimension = static_cast<uint8_t>(dimension);
  }
  o.value = d.read(d.operands().back(), field->width);
  i.execute = replace;
}

/// tensormap.cp_fenceproxy.... [global], [shared], 128
void decode_copy(Decoder &d, Instruction &i) {
  need_form(d,
            "cp_fenceproxy global shared::cta tensormap::generic release cta|cluster|gpu|sys sync "
            "aligned",
            3);
  if (constant_of(d, d.operands()[2]) != kMapBytes) d.unknown("size of tensormap.cp_fenceproxy");
  i.make<CopyMap>() = {decode_address(d, d.operands()[0]), decode_address(d, d.operands()[1])};
  i.is_collective = true;
  i.execute = copy_map;
}

/// fence.proxy.tensormap::generic.{acquire.SCOPE [address], 128 | release.SCOPE}
void decode_fence(Decoder &d, Instruction &i) {
  const bool acquires = d.has("acquire");
  need_form(d, "proxy tensormap::generic acquire|release cta|cluster|gpu|sys", acquires ? 2 : 0);
  if (!acquires) {
    i.execute = release_maps;
    return;
  }
  if (constant_of(d, d.operands()[1]) != kMapBytes) d.unknown("size of fence.proxy.tensormap");
  i.make<AddressOperand>() = decode_address(d, d.operands()[0]);
  i.execute = acquire_map;
}

}  // namespace

TensorMap read_tensor_map(Warp &warp, const Instruction &i, int lane, uint64_t address) {
  const TensorMap map = map_at(warp, i, lane, address);
  const MapChange change = ChangedMaps::get().at(address);
  const char *missing =
      change == MapChange::kMade                                                       ? "release"
      : change == MapChange::kReleased && !warp.block->acquired_maps.contains(address) ? "acquire"
                                                                                       : nullptr;
  if (missing != nullptr)
    violation(warp, i, lane,
              "uses a tensor map that was modified on the device, without fence.proxy.tensormap %s",
              missing);
  return map;
}

void check_proxy_writes(Warp &warp, const Instruction &i, Block &block, uint32_t offset,
                        uint32_t bytes, uint32_t reader_fence, const char *reader) {
  std::vector<uint32_t> fences;
  for (const auto &x : block.warps)
    fences.insert(fences.end(), x->bulk.fenced.begin(), x->bulk.fenced.end());
  const int thread = block.smem.unfenced_writer(offset, bytes, fences, reader_fence);
  if (thread >= 0)
    violation(warp, i, -1,
              "%s reads without fence.proxy.async: thread %d wrote shared memory at %u", reader,
              thread, offset - kReservedSmem);
}

void decode_tensor_map(Decoder &d, Instruction &i) {
  return d.part(1) == "replace" ? decode_replace(d, i) : decode_copy(d, i);
}

void decode_map_prefetch(Decoder &d, Instruction &i) {
  need_form(d, "tensormap param|const|global?", 1);
  i.make<AddressOperand>() = decode_address(d, d.operands()[0]);
  i.execute = prefetch_map;
}

void decode_proxy_fence(Decoder &d, Instruction &i) {
  if (d.part(2) == "tensormap::generic") return decode_fence(d, i);
  if (d.part(1) == "mbarrier_init") {
    need_form(d, "mbarrier_init release cluster", 0);
    i.execute = fence_initialisation;
    return;
  }
  need_form(d, "proxy async global|shared::cta|shared::cluster?", 0);
  const bool has_space = d.statement().opcode.size() > 3;
  i.make<AsyncFence>() = {!d.has("global"), !has_space || d.has("global")};
  i.execute = fence_async;
}

}  // namespace softgpu
