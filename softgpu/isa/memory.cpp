// Dispatch of loads, stores, atomics, cp.async, fences and cache hints, which have no effect.
#include <atomic>
#include <string_view>

#include "softgpu/isa/memory_parts.h"
#include "softgpu/isa/operands.h"
#include "softgpu/machine/block.h"
#include "softgpu/machine/lanes.h"
#include "softgpu/machine/race_check.h"
#include "softgpu/machine/warp.h"

namespace softgpu {
namespace {

Step do_nothing(Warp &, const Instruction &, Lanes) {
  return Step::kNext;
}

/// Warps on one host thread see each other's accesses in order.  Warps on other threads may see a
/// store after a later load, as on hardware.
Step fence(Warp &warp, const Instruction &, Lanes lanes) {
  warp.block->unfenced_mbarriers.release(warp.first_thread(), lanes);
  if (RaceCheck *races = races_of(warp)) races->fence(warp, lanes);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Step::kNext;
}

struct PolicyOperands {
  RegisterSlot to;
};
/// Cache policies are numbers that only cache hints use.
Step create_policy(Warp &warp, const Instruction &i, Lanes lanes) {
  uint64_t *to = warp.row<uint64_t>(i.as<PolicyOperands>().to);
  set_lanes(to, lanes, [](int) { return uint64_t{0}; });
  return Step::kNext;
}

/// fence.proxy and fence.mbarrier_init are decoded in isa/async.cpp.
bool decode_fence(Decoder &decoder, Instruction &i) {
  const bool is_membar = decoder.opcode() == "membar";
  if (decoder.part(1) == "proxy" || decoder.part(1) == "mbarrier_init") return false;
  if (is_membar)
    allow_parts(decoder, {"cta", "gl", "sys"});
  else
    allow_parts(decoder, {"sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys"});
  const size_t num_parts = decoder.statement().opcode.size();
  if (num_parts < 2 || num_parts > (is_membar ? 2 : 3)) decoder.unknown("fence");
  need_operands(decoder, 0, 0);
  i.execute = fence;
  return true;
}

bool decode_policy(Decoder &decoder, Instruction &i) {
  const bool is_range = decoder.part(1) == "range", is_fraction = decoder.part(1) == "fractional";
  if (!is_range && !is_fraction) need_parts(decoder, {"cvt", "L2", "b64"});
  allow_parts(decoder, {"range", "global", "fractional", "cvt", "L2", "L2::evict_last",
                        "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged", "b64"});
  need_operands(decoder, is_range ? 4 : is_fraction ? 1 : 2, is_range ? 4 : 2);
  i.make<PolicyOperands>().to = decoder.write(decoder.operands()[0], 8);
  i.execute = create_policy;
  return true;
}

/// prefetch.tensormap is decoded with the other tensor map instructions.
bool decode_hint(Decoder &decoder, Instruction &i) {
  const std::string_view opcode = decoder.opcode();
  if (opcode == "prefetch" && !decoder.has("tensormap")) {
    allow_parts(decoder, {"global", "local", "L1", "L2", "L2::evict_last", "L2::evict_normal"});
  } else if (opcode == "prefetchu") {
    need_parts(decoder, {"L1"});
  } else if (opcode == "applypriority") {
    allow_parts(decoder, {"global", "L2::evict_normal"});
  } else if (opcode == "discard") {
    allow_parts(decoder, {"global", "L2"});
  } else if (opcode == "nanosleep") {
    need_parts(decoder, {"u32"});
  } else {
    return false;
  }
  const size_t num_operands = opcode == "applypriority" || opcode == "discard" ? 2 : 1;
  need_operands(decoder, num_operands, num_operands);
  i.execute = do_nothing;
  return true;
}

using DecodePart = void (*)(OpcodeCursor &);
bool decode_by(DecodePart part, Decoder &decoder, Instruction &i) {
  OpcodeCursor form(decoder, i);
  part(form);
  form.finish();
  return true;
}

}  // namespace

bool decode_memory(Decoder &decoder, Instruction &i) {
  const std::string_view opcode = decoder.opcode();
  if (opcode == "ld" || opcode == "ldu") return decode_by(decode_load, decoder, i);
  if (opcode == "st" && decoder.part(1) != "async" && decoder.part(1) != "bulk")
    return decode_by(decode_store, decoder, i);
  if (opcode == "atom") return decode_by(decode_atom, decoder, i);
  if (opcode == "red" && decoder.part(1) != "async") return decode_by(decode_red, decoder, i);
  if (opcode == "cp" && decoder.part(1) == "async") {
    OpcodeCursor form(decoder, i);
    return decode_async_copy(form);
  }
  if (opcode == "membar" || opcode == "fence") return decode_fence(decoder, i);
  if (opcode == "createpolicy") return decode_policy(decoder, i);
  return decode_hint(decoder, i);
}

}  // namespace softgpu
