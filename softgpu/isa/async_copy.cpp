// cp.async: PTX ISA, Data Movement and Conversion Instructions, Non-bulk copy.
//
// A copy completes when its thread waits for its group (Completion::kLate), at a random earlier
// time (kRandom), or immediately (kEarly).  Until then its destination contains kPoison.
#include "softgpu/machine/async_copy.h"

#include <cstring>

#include "softgpu/isa/load_store.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {
namespace {

struct CopyOperands {
  AddressOperand destination, source;
  RegisterSlot limit;  ///< per lane: bytes to read (u32), or a predicate to read none
  enum class Limit : uint8_t { kNone, kBytes, kIgnore } kind;
  uint8_t bytes;
};

/// Computes the bytes that each lane reads; the rest of its destination is filled with 0.
void read_valid_bytes(Warp &warp, const Instruction &i, Lanes lanes, uint32_t *valid) {
  const CopyOperands &o = i.as<CopyOperands>();
  for (int l = 0; l < kWarpSize; l++) valid[l] = o.bytes;
  if (o.kind == CopyOperands::Limit::kIgnore) {
    for_each_lane(warp.predicate(o.limit), [&](int l) { valid[l] = 0; });
  } else if (o.kind == CopyOperands::Limit::kBytes) {
    const uint32_t *limit = warp.row<uint32_t>(o.limit);
    for_each_lane(lanes, [&](int l) {
      valid[l] = limit[l];
      if (limit[l] > o.bytes) fault(warp, i, l, "cp.async of %u of %u bytes", limit[l], o.bytes);
    });
  }
}

/// Reports the source accesses to the counters and the checks.
void watch_sources(Warp &warp, const Instruction &i, Lanes reading, const LaneAddresses &sources,
                   const uint32_t *valid, bool all_read_all) {
  if (!watches_memory()) return;
  if (RaceCheck *races = races_of(warp))
    races->read_global_copy(warp, i, reading, sources.of, valid);
  if (all_read_all)
    return watch_global(warp, i, reading, sources.of, valid[first_lane(reading)], Access::kRead);
  std::vector<MemoryRun> runs;
  for_each_lane(reading, [&](int l) { runs.push_back({sources.of[l], valid[l], l}); });
  watch_bulk_global(warp, i, runs, Access::kRead);
}

/// Checks the sources: of complete copies together, of partial copies one by one.
void check_sources(Warp &warp, const Instruction &i, Lanes lanes, const LaneAddresses &sources,
                   const uint32_t *valid, uint32_t bytes) {
  const Lanes reading = lanes & lanes_where([&](int l) { return valid[l] != 0; });
  if (reading == 0) return;
  check_alignment(warp, i, reading, sources, bytes);
  const auto check = [&](Lanes same, uint32_t num_bytes) {
    LaneAddresses places = sources;
    const uint64_t inside = places.of[first_lane(same)];
    for_each_lane(~same, [&](int l) { places.of[l] = inside; });
    locate_global(warp, i, same, &places, num_bytes, Access::kRead);
  };
  const Lanes whole = reading & lanes_where([&](int l) { return valid[l] == bytes; });
  if (whole != 0) check(whole, bytes);
  for_each_lane(reading & ~whole, [&](int l) { check(Lanes{1} << l, valid[l]); });
  watch_sources(warp, i, reading, sources, valid, whole == reading);
}

void check_destinations(Warp &warp, const Instruction &i, Lanes lanes,
                        const LaneAddresses &destinations, uint32_t bytes) {
  check_alignment(warp, i, lanes, destinations, bytes);
  LaneAddresses places = destinations;
  // The write follows at completion.
  locate_shared(warp, i, lanes, &places, bytes, Access::kRead);
  if (options().counts_memory)
    watch_lanes(warp, i, lanes, Space::kShared, destinations, bytes, Access::kWrite);
  if (RaceCheck *races = races_of(warp)) {
    uint32_t addresses[kWarpSize];
    for (int l = 0; l < kWarpSize; l++) addresses[l] = static_cast<uint32_t>(destinations.of[l]);
    races->copy(warp, i, lanes, addresses, bytes);
  }
}

void land(Warp &warp, const SmallCopy &copy) {
  SharedMemory &smem = warp.block->smem;
  const uint32_t offset = copy.destination & kOffsetMask;
  const auto *source = reinterpret_cast<const std::byte *>(copy.source);
  if (copy.valid_bytes == 16) {
    memcpy(smem.at(offset), source, 16);
  } else {
    memset(smem.at(offset), 0, copy.bytes);
    memcpy(smem.at(offset), source, copy.valid_bytes);
  }
  // cp.async writes through the generic proxy: PTX ISA, Async proxy.
  smem.note_write(warp.thread_of(copy.lane), offset, copy.bytes);
  if (smem.written()) smem.written().set(offset, copy.bytes);
}

void poison(SharedMemory &smem, Lanes lanes, const LaneAddresses &destinations, uint32_t bytes) {
  for_each_lane(lanes, [&](int l) {
    const uint32_t offset = static_cast<uint32_t>(destinations.of[l]) & kOffsetMask;
    // The constant size of the usual case compiles to one store.
    smem.poison(offset, bytes == 16 ? 16 : bytes);
  });
}

Step copy(Warp &warp, const Instruction &i, Lanes lanes) {
  const CopyOperands &o = i.as<CopyOperands>();
  LaneAddresses sources, destinations;
  uint32_t valid[kWarpSize];
  read_addresses(warp, lanes, o.source, &sources);
  read_addresses(warp, lanes, o.destination, &destinations);
  read_valid_bytes(warp, i, lanes, valid);
  check_sources(warp, i, lanes, sources, valid, o.bytes);
  check_destinations(warp, i, lanes, destinations, o.bytes);

  uint64_t bytes_read = 0;
  auto &pending = warp.copies.pending;
  const size_t num_before = pending.size();
  for_each_lane(lanes, [&](int l) {
    // Filled in place: copying an object just written in parts would stall.
    SmallCopy &one = pending.emplace_back();
    one.source = sources.of[l];
    one.destination = static_cast<uint32_t>(destinations.of[l]);
    one.group = warp.copies.num_committed[static_cast<size_t>(l)];
    one.lane = static_cast<uint8_t>(l);
    one.bytes = o.bytes;
    one.valid_bytes = static_cast<uint8_t>(valid[l]);
    bytes_read += valid[l];
  });
  if (options().completion == Completion::kEarly) {
    for (size_t c = num_before; c < pending.size(); c++) land(warp, pending[c]);
    pending.resize(num_before);
  } else {
    poison(warp.block->smem, lanes, destinations, o.bytes);
  }
  count_bytes(warp, i, bytes_read);
  return Step::kNext;
}

/// Completes the copies for which f is true, in the order of their issue.
template <class F>
void land_where(Warp &warp, F &&f) {
  std::erase_if(warp.copies.pending, [&](const SmallCopy &c) {
    if (!f(c)) return false;
    land(warp, c);
    return true;
  });
}

Step commit(Warp &warp, const Instruction &, Lanes lanes) {
  if (RaceCheck *races = races_of(warp)) races->commit_copies(warp, lanes);
  for_each_lane(lanes, [&](int l) { warp.copies.num_committed[static_cast<size_t>(l)]++; });
  return Step::kNext;
}

Step wait_for_groups(Warp &warp, const Instruction &i, Lanes lanes) {
  const uint32_t num_pending = i.as<uint32_t>();
  land_groups(warp, lanes, num_pending);
  if (RaceCheck *races = races_of(warp)) races->wait_for_copies(warp, lanes, num_pending);
  return Step::kNext;
}

Step wait_for_all(Warp &warp, const Instruction &, Lanes lanes) {
  land_all_copies(warp, lanes);
  if (RaceCheck *races = races_of(warp)) {  // the wait includes a commit (PTX ISA)
    races->commit_copies(warp, lanes);
    races->wait_for_copies(warp, lanes, 0);
  }
  return Step::kNext;
}

/// Decodes cp.async.ca.shared.global [dst], [src], 4, 8 or 16 {, bytes or ignore-src} {, policy}.
void decode_copy(OpcodeCursor &form) {
  Decoder &decoder = form.decoder;
  const bool is_cg = form.need_any({"ca", "cg"}) == 1;
  form.need_any({"shared", "shared::cta"});
  const bool has_policy = take_cache_hints(form);
  // The last part of the opcode is "global" or a prefetch size, not a type.
  const std::string_view last = decoder.type();
  const bool has_prefetch = last == "L2::64B" || last == "L2::128B" || last == "L2::256B";
  if (last != "global" && !has_prefetch && last != "L2::cache_hint") decoder.unknown("modifier");
  if (last != "global" && !form.take("global")) decoder.unknown("source");

  const auto &operands = decoder.operands();
  const size_t num_operands = operands.size() - (has_policy || last == "L2::cache_hint");
  if (num_operands < 3 || num_operands > 4) decoder.unknown("number of operands");
  CopyOperands &o = form.instruction.make<CopyOperands>();
  o.destination = decode_address(decoder, operands[0]);
  o.source = decode_address(decoder, operands[1]);
  const uint64_t bytes = operands[2].bits;
  if (operands[2].kind != ptx::OperandKind::kImmediate ||
      (bytes != 16 && (is_cg || (bytes != 4 && bytes != 8))))
    decoder.unknown("size");
  o.bytes = static_cast<uint8_t>(bytes);
  o.kind = CopyOperands::Limit::kNone;
  if (num_operands == 4) {
    const bool is_predicate = operands[3].width == 1;
    o.kind = is_predicate ? CopyOperands::Limit::kIgnore : CopyOperands::Limit::kBytes;
    o.limit = decoder.read(operands[3], is_predicate ? 1 : 4);
  }
  form.instruction.execute = copy;
}

}  // namespace

void land_copy(Warp &warp, size_t index) {
  auto &pending = warp.copies.pending;
  land(warp, pending[index]);
  pending[index] = pending.back();
  pending.pop_back();
}

void land_groups(Warp &warp, Lanes lanes, uint32_t num_pending) {
  land_where(warp, [&](const SmallCopy &c) {
    const uint32_t num_since = warp.copies.num_committed[c.lane] - c.group;  // 0: not committed
    return (lanes >> c.lane & 1) != 0 && num_since > num_pending;
  });
}

void land_all_copies(Warp &warp, Lanes lanes) {
  land_where(warp, [&](const SmallCopy &c) { return (lanes >> c.lane & 1) != 0; });
}

void finish_copies(Warp &warp) {
  land_all_copies(warp, kAllLanes);
}

void decode_async_copy(OpcodeCursor &form) {
  const std::string_view kind = form.decoder.part(2);
  form.take("async");
  if (!kind.ends_with("_group") && kind != "wait_all") return decode_copy(form);
  const bool has_count = kind == "wait_group";
  need_form(form.decoder, has_count ? "async wait_group" : "async commit_group|wait_all",
            has_count);
  form.instruction.execute = has_count            ? wait_for_groups
                             : kind == "wait_all" ? wait_for_all
                                                  : commit;
  if (has_count)
    form.instruction.make<uint32_t>() =
        static_cast<uint32_t>(constant_of(form.decoder, form.decoder.operands()[0]));
}

}  // namespace softgpu
