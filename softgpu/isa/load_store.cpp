#include "softgpu/isa/load_store.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "softgpu/isa/lane_data.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {
namespace {

constexpr int kMaxBytes = 16;  // bytes per lane

/// Spaces with separate handlers; kAny handlers use AccessOperands::space.
enum class Path { kGlobal, kShared, kAny };

template <Path path>
inline void locate_by(Warp &warp, const Instruction &i, Lanes lanes, const AccessOperands &o,
                      LaneAddresses *addresses, uint32_t bytes, Access access) {
  read_addresses(warp, lanes, o.address, addresses);
  check_alignment(warp, i, lanes, *addresses, bytes);
  if constexpr (path == Path::kGlobal) {
    locate_global(warp, i, lanes, addresses, bytes, access);
  } else if constexpr (path == Path::kShared) {
    locate_shared(warp, i, lanes, addresses, bytes, access);
  } else {
    locate(warp, i, lanes, o.space, addresses, bytes, access);
  }
  count_bytes(warp, i, static_cast<uint64_t>(num_lanes(lanes)) * bytes);
}

template <bool kStores, Path path, class Element, class Register, int n>
Step access(Warp &warp, const Instruction &i, Lanes lanes) {
  const AccessOperands &o = i.as<AccessOperands>();
  LaneAddresses places;
  locate_by<path>(warp, i, lanes, o, &places, n * sizeof(Element),
                  kStores ? Access::kWrite : Access::kRead);
  if constexpr (kStores)
    store_rows<Element, Register, n>(warp, lanes, places, o.data);
  else
    load_rows<Element, Register, n>(warp, lanes, places, o.data);
  return Step::kNext;
}

struct MemoryType {
  int bytes;
  bool is_signed;
};

/// Properties that select a handler.
struct Variant {
  bool is_store;
  Space space;
  int vector;
};

template <class Element, class Register>
Handler handler_of(const Variant &v) {
  Handler handler = nullptr;
  const int path = v.space == Space::kGlobal ? 0 : v.space == Space::kShared ? 1 : 2;
  with_number<3>(path, [&](auto p) {
    constexpr Path kPath = static_cast<Path>(p());
    with_flags(
        [&](auto stores, auto is_pair, auto is_four) {
          constexpr int n = is_four ? 4 : is_pair ? 2 : 1;
          handler = access<stores, kPath, Element, Register, n>;
        },
        v.is_store, v.vector == 2, v.vector == 4);
  });
  return handler;
}

/// A register may be wider than the element: a load extends by the sign or zeros, a store
/// truncates.
template <class Unsigned>
Handler handler_of(const Variant &v, bool is_signed, int register_bytes) {
  using Signed = std::make_signed_t<Unsigned>;
  const bool extends_sign = is_signed && !v.is_store;
  if (register_bytes == 8)
    return extends_sign ? handler_of<Signed, uint64_t>(v) : handler_of<Unsigned, uint64_t>(v);
  if (extends_sign && register_bytes == 4) return handler_of<Signed, uint32_t>(v);
  if (extends_sign) return handler_of<Signed, uint16_t>(v);
  return handler_of<Unsigned, uint32_t>(v);
}

Handler handler_of(const Variant &v, MemoryType element, int register_bytes) {
  switch (element.bytes) {
    case 1:
      return handler_of<uint8_t>(v, element.is_signed, register_bytes);
    case 2:
      return handler_of<uint16_t>(v, element.is_signed, register_bytes);
    case 4:
      return handler_of<uint32_t>(v, element.is_signed, register_bytes);
    default:
      return handler_of<uint64_t, uint64_t>(v);
  }
}

MemoryType decode_element(const OpcodeCursor &form) {
  static constexpr std::string_view kTypes[] = {"b8",  "u8",  "s8",  "b16", "u16", "s16", "b32",
                                                "u32", "s32", "f32", "b64", "u64", "s64", "f64"};
  const std::string_view type = form.decoder.type();
  if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes))
    form.unknown_type();
  return {ptx::type_size(type), type[0] == 's'};
}

/// Resolves .param: kernel parameters, or parameters of a call, which are local variables.
Space decode_space(const Decoder &decoder, const ptx::Operand &address, bool is_store) {
  const Space space = space_of(decoder);
  if (space != Space::kParameter) return space;
  if (decoder.is_local(address.name)) return Space::kLocal;
  if (is_store) decoder.unknown("write to a parameter");
  return space;
}

/// Returns the bytes of the registers of the elements: 2 and 4 both use one word per lane.
int register_bytes_of(const OpcodeCursor &form, const std::vector<ptx::Operand> &elements,
                      int element) {
  int bytes = 0;
  for (const ptx::Operand &e : elements) {
    const int own = e.kind != ptx::OperandKind::kRegister ? 0
                    : e.width == 4 && e.is_half           ? 2
                                                          : e.width;
    if (own == 0) continue;
    if (own == 1 || (bytes != 0 && own != bytes)) form.decoder.unknown("registers of a vector");
    bytes = own;
  }
  if (bytes == 0) bytes = element;
  if (bytes < element) form.decoder.unknown("a register narrower than the type");
  return bytes;
}

}  // namespace

void decode_access(OpcodeCursor &form) {
  Decoder &decoder = form.decoder;
  const bool is_store = decoder.opcode() == "st";
  const size_t data_at = is_store ? 1 : 0;
  const MemoryOrder order = take_memory_order(form, false);
  form.take_any({"global", "const", "shared", "shared::cta", "shared::cluster", "local", "param",
                 "param::entry", "param::func"});
  form.take_any({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  if (!is_store) form.take("nc");
  const bool has_policy = take_cache_hints(form);
  form.take("unified");
  const int vector = form.take("v2") ? 2 : form.take("v4") ? 4 : 1;
  form.need_operands(has_policy ? 3 : 2);

  const MemoryType element = decode_element(form);
  if (element.bytes * vector > kMaxBytes) form.unknown_type();
  const ptx::Operand &data = decoder.operands()[data_at],
                     &address = decoder.operands()[1 - data_at];
  const std::vector<ptx::Operand> elements =
      data.kind == ptx::OperandKind::kVector ? data.items : std::vector{data};
  if (elements.size() != static_cast<size_t>(vector)) decoder.unknown("number of elements");
  if (is_store && decoder.has("const")) decoder.unknown("write to .const");

  AccessOperands &o = form.instruction.make<AccessOperands>();
  o.order = order;
  o.space = decode_space(decoder, address, is_store);
  o.access = is_store ? Access::kWrite : Access::kRead;
  o.bytes = static_cast<uint8_t>(element.bytes * vector);
  o.address = decode_address(decoder, address);
  const int register_bytes = register_bytes_of(form, elements, element.bytes);
  const int width = register_bytes == 8 ? 8 : 4;
  for (size_t e = 0; e < elements.size(); e++)
    o.data[e] = is_store ? decoder.read(elements[e], width) : decoder.write(elements[e], width);
  form.instruction.execute = handler_of({is_store, o.space, vector}, element, register_bytes);
  watch(form.instruction, o);
}

Step execute_watched(Warp &warp, const Instruction &i, Lanes lanes) {
  const AccessOperands &o = i.as<AccessOperands>();
  LaneAddresses addresses;
  read_addresses(warp, lanes, o.address, &addresses);
  // A write marks bytes as initialized before it stores them, and a read checks the marks after it
  // loads, so that concurrent accesses by other host threads cause no false reports.
  if (o.access == Access::kWrite)
    watch_lanes(warp, i, lanes, o.space, addresses, o.bytes, o.access);
  const Step step = options().checks_races ? execute_checked(warp, i, lanes, addresses)
                                           : o.watched(warp, i, lanes);
  if (o.access != Access::kWrite)
    watch_lanes(warp, i, lanes, o.space, addresses, o.bytes, o.access);
  return step;
}

void watch(Instruction &i, AccessOperands &o) {
  if (!watches_memory()) return;
  o.watched = i.execute;
  i.execute = execute_watched;
}

// ---- race check

namespace {

constexpr uint32_t kMaxCheckedBytes = 16;

/// Shared addresses of the lanes with valid accesses; the handler faults for other lanes.
struct SharedLanes {
  Lanes lanes;
  uint32_t addresses[kWarpSize];
};

SharedLanes shared_lanes(Warp &warp, Lanes lanes, const AccessOperands &o,
                         const LaneAddresses &addresses) {
  SharedLanes shared{};
  for_each_lane(lanes & lanes_in_shared(o.space, addresses), [&](int l) {
    shared.addresses[l] = static_cast<uint32_t>(addresses.of[l]);
    const SharedMemory *smem = memory_at(warp, shared.addresses[l]);
    if (smem != nullptr && smem->holds(shared.addresses[l] & kOffsetMask, o.bytes))
      shared.lanes |= Lanes{1} << l;
  });
  return shared;
}

/// Returns the lanes whose addresses are in global memory, valid or not.
Lanes global_lanes(Lanes lanes, Space space, const LaneAddresses &addresses) {
  if (space == Space::kGlobal) return lanes;
  if (space != Space::kGeneric) return 0;
  return lanes & ~lanes_in_shared(space, addresses) &
         lanes_where([&](int l) { return (addresses.of[l] & kWindowMask) != kLocalWindow; });
}

/// Host addresses of the bytes that lanes store.
struct Destinations {
  Lanes lanes;
  const std::byte *of[kWarpSize];
};

Destinations destinations_of(Warp &warp, const SharedLanes &shared, Lanes global,
                             const LaneAddresses &addresses) {
  Destinations to;
  to.lanes = shared.lanes | global;
  for_each_lane(to.lanes, [&](int l) {
    const uint32_t in_shared = shared.addresses[l];
    to.of[l] = global >> l & 1 ? reinterpret_cast<const std::byte *>(addresses.of[l])
                               : memory_at(warp, in_shared)->at(in_shared & kOffsetMask);
  });
  return to;
}

/// Returns the lanes whose bytes overlap with those of another lane.
Lanes overlapping_lanes(const Destinations &to, uint32_t bytes) {
  std::pair<const std::byte *, int> sorted[kWarpSize];
  int n = 0;
  for_each_lane(to.lanes, [&](int l) { sorted[n++] = {to.of[l], l}; });
  std::sort(sorted, sorted + n);
  Lanes overlapping = 0;
  for (int k = 1; k < n; k++) {
    if (sorted[k].first - sorted[k - 1].first >= static_cast<ptrdiff_t>(bytes)) continue;
    overlapping |= Lanes{1} << sorted[k].second | Lanes{1} << sorted[k - 1].second;
  }
  return overlapping;
}

/// Returns "byte 4 of shared memory" for a host address within a lane's access.
std::string name_of(const std::byte *place, int lane, const SharedLanes &shared,
                    const Destinations &to) {
  if ((shared.lanes >> lane & 1) != 0)
    return format("byte %u of shared memory", static_cast<uint32_t>(place - to.of[lane]) +
                                                  (shared.addresses[lane] & kOffsetMask) -
                                                  kReservedSmem);
  return name_byte(reinterpret_cast<uint64_t>(place));
}

/// Executes a store lane by lane where lanes overlap.  Reports different values of a byte: the
/// winner is undefined (CUDA C++ Programming Guide, SIMT Architecture).
Step store_one_by_one(Warp &warp, const Instruction &i, Lanes lanes, Lanes overlapping,
                      const SharedLanes &shared, const Destinations &to) {
  const AccessOperands &o = i.as<AccessOperands>();
  if ((lanes & ~overlapping) != 0) o.watched(warp, i, lanes & ~overlapping);
  std::byte stored[kWarpSize][kMaxCheckedBytes];
  Lanes done = 0;
  bool was_reported = false;
  for_each_lane(overlapping, [&](int l) {
    o.watched(warp, i, Lanes{1} << l);  // faults if the destination is invalid
    std::memcpy(stored[l], to.of[l], o.bytes);
    for_each_lane(done, [&](int other) {
      for (ptrdiff_t b = 0; b < o.bytes && !was_reported; b++) {
        const ptrdiff_t of_other = to.of[l] + b - to.of[other];
        if (of_other < 0 || of_other >= o.bytes || stored[other][of_other] == stored[l][b])
          continue;
        was_reported = true;
        violation(warp, i, l, "race: thread %d concurrently writes a different value to %s",
                  warp.thread_of(other), name_of(to.of[l] + b, l, shared, to).c_str());
      }
    });
    done |= Lanes{1} << l;
  });
  return Step::kNext;
}

Step store(Warp &warp, const Instruction &i, Lanes lanes, const SharedLanes &shared, Lanes global,
           const LaneAddresses &addresses) {
  const AccessOperands &o = i.as<AccessOperands>();
  // Strong stores to global memory are excluded: they do not race, and any of them may win.
  const Destinations to = destinations_of(warp, shared, o.order.is_strong ? 0 : global, addresses);
  const Lanes overlapping = overlapping_lanes(to, o.bytes);
  if (overlapping == 0) return o.watched(warp, i, lanes);
  return store_one_by_one(warp, i, lanes, overlapping, shared, to);
}

}  // namespace

Step execute_checked(Warp &warp, const Instruction &i, Lanes lanes,
                     const LaneAddresses &addresses) {
  const AccessOperands &o = i.as<AccessOperands>();
  if (o.space == Space::kLocal || o.space == Space::kParameter) return o.watched(warp, i, lanes);
  RaceCheck &races = *races_of(warp);
  const Lanes global = global_lanes(lanes, o.space, addresses);
  std::unique_lock<std::recursive_mutex> lock;
  if (global != 0) lock = races.lock_global();
  const SharedLanes shared = shared_lanes(warp, lanes, o, addresses);
  const bool writes = o.access != Access::kRead, is_update = o.access == Access::kUpdate;
  // The release includes this access.
  races.touch(warp, i, shared.lanes, shared.addresses, o.bytes,
              {.writes = writes, .is_strong = o.order.is_strong});
  const RaceKind kind{.writes = writes, .is_strong = o.order.is_strong, .observes = is_update};
  if (global != 0) races.touch_global(warp, i, global, addresses.of, o.bytes, kind);
  if (o.order.is_strong && writes)
    races.release_flags(warp, lanes, addresses.of, is_update, o.order.releases);
  const Step step = o.access == Access::kWrite ? store(warp, i, lanes, shared, global, addresses)
                                               : o.watched(warp, i, lanes);
  if (o.order.is_strong && o.access != Access::kWrite)
    races.acquire_flags(warp, lanes, addresses.of, o.order.acquires);
  return step;
}

}  // namespace softgpu
