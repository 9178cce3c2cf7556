// decode_memory: loads, stores, atomics, cp.async, fences, and hints that mean nothing here.
#include <algorithm>
#include <atomic>
#include <iterator>
#include <string_view>

#include "tools/softgpu/isa/memory_parts.h"
#include "tools/softgpu/machine/block.h"
#include "tools/softgpu/machine/lanes.h"
#include "tools/softgpu/machine/race_check.h"
#include "tools/softgpu/machine/warp.h"

namespace softgpu {
namespace {

Step do_nothing(Warp &, const Instruction &, Lanes) {
  return Step::kNext;
}

/// Warps on one thread of the host see each other's accesses in order.  Those on another thread may
/// see a store after a later load, as on the device.
Step fence(Warp &warp, const Instruction &, Lanes lanes) {
  warp.block->unfenced_mbarriers.release(warp.first_thread(), lanes);
  if (RaceCheck *races = races_of(warp)) races->fence(warp, lanes);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Step::kNext;
}

struct PolicyOperands {
  Row to;
};
/// A cache policy is a number that only cache hints read.
Step create_policy(Warp &warp, const Instruction &i, Lanes lanes) {
  uint64_t *to = warp.row<uint64_t>(i.as<PolicyOperands>().to);
  set_lanes(to, lanes, [](int) { return uint64_t{0}; });
  return Step::kNext;
}

/// fence.proxy and fence.mbarrier_init are decoded with what they are about (isa/async.cpp).
bool decode_fence(Decoder &decoder, Instruction &i) {
  const bool is_membar = decoder.opcode() == "membar";
  if (decoder.part(1) == "proxy" || decoder.part(1) == "mbarrier_init") return false;
  static constexpr std::string_view kParts[] = {"sc",  "acq_rel", "acquire", "release",
                                                "cta", "cluster", "gpu",     "sys"};
  static constexpr std::string_view kScopes[] = {"cta", "gl", "sys"};
  const auto is_one_of = [](std::string_view part, auto &list) {
    return std::find(std::begin(list), std::end(list), part) != std::end(list);
  };
  for (size_t p = 1; p < decoder.statement().opcode.size(); p++)
    if (!(is_membar ? is_one_of(decoder.part(p), kScopes) : is_one_of(decoder.part(p), kParts)))
      decoder.unknown("fence");
  i.execute = fence;
  return true;
}

bool is_hint(const Decoder &decoder) {
  const std::string_view opcode = decoder.opcode();
  if (opcode == "prefetch") return !decoder.has("tensormap");
  return opcode == "prefetchu" || opcode == "applypriority" || opcode == "discard" ||
         opcode == "nanosleep";
}

using DecodePart = void (*)(Form &);
bool decode_by(DecodePart part, Decoder &decoder, Instruction &i) {
  Form form(decoder, i);
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
    Form form(decoder, i);
    return decode_async_copy(form);
  }
  if (opcode == "membar" || opcode == "fence") return decode_fence(decoder, i);
  if (opcode == "createpolicy") {
    i.make<PolicyOperands>().to = decoder.write(decoder.operands()[0], 8);
    i.execute = create_policy;
    return true;
  }
  if (is_hint(decoder)) {
    i.execute = do_nothing;
    return true;
  }
  return false;
}

}  // namespace softgpu
