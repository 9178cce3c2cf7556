// Dispatch of statements to the chapters of the PTX ISA.
#include "softgpu/isa/decode.h"

#include <atomic>
#include <string_view>

#include "softgpu/isa/operands.h"
#include "softgpu/machine/block.h"
#include "softgpu/machine/lanes.h"
#include "softgpu/machine/race_check.h"
#include "softgpu/machine/warp.h"

namespace softgpu {

bool decode_arithmetic(Decoder &decoder, Instruction &instruction) {
  OpcodeCursor form(decoder, instruction);
  if (decode_compare(form) || decode_select(form)) return true;
  if (is_integer(form.type)) return decode_integer(form) || decode_bits(form);
  switch (form.type) {
    case Type::kU16x2:
    case Type::kS16x2:
      return decode_packed_integer(form);
    case Type::kF16:
    case Type::kBf16:
    case Type::kF16x2:
    case Type::kBf16x2:
      return decode_half(form);
    case Type::kF32:
    case Type::kF64:
      return decode_float(form);
    default:
      return false;
  }
}

bool decode_control(Decoder &d, Instruction &i) {
  return decode_branch(d, i) || decode_barrier(d, i) || decode_grid_dependency(d, i) ||
         decode_exchange(d, i);
}

bool decode_tensor(Decoder &d, Instruction &i) {
  return decode_wmma(d, i) || decode_mma(d, i) || decode_matrix_rows(d, i) || decode_wgmma(d, i) ||
         decode_set_max_registers(d, i);
}

bool decode_async(Decoder &d, Instruction &i) {
  return decode_mbarrier(d, i) || decode_bulk_group(d, i) || decode_tensor_copy(d, i) ||
         decode_plain_copy(d, i) || decode_tensor_map(d, i) || decode_proxy_fence(d, i) ||
         decode_cluster_address(d, i);
}

// ---- ld, st, atomics, cp.async, fences, and cache hints, which have no effect

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

/// Cache policies are numbers that only cache hints use.
Step create_policy(Warp &warp, const Instruction &i, Lanes lanes) {
  uint64_t *to = warp.row<uint64_t>(i.as<RegisterSlot>());
  set_lanes(to, lanes, [](int) { return uint64_t{0}; });
  return Step::kNext;
}

/// fence.proxy and fence.mbarrier_init are decoded in isa/tensor_map_edit.cpp.
bool decode_fence(Decoder &decoder, Instruction &i) {
  if (decoder.part(1) == "proxy" || decoder.part(1) == "mbarrier_init") return false;
  need_form(decoder,
            decoder.opcode() == "membar" ? "cta|gl|sys"
                                         : "sc|acq_rel|acquire|release? cta|cluster|gpu|sys",
            0);
  i.execute = fence;
  return true;
}

bool decode_policy(Decoder &decoder, Instruction &i) {
  const std::string priority =
      "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged";
  if (decoder.has("cvt"))
    need_form(decoder, "cvt L2 b64", 2);
  else if (decoder.has("range"))
    need_form(decoder, "range global? " + priority + " " + priority + "? b64", 4);
  else
    need_form(decoder, "fractional " + priority + " " + priority + "? b64", 1, 2);
  i.make<RegisterSlot>() = decoder.write(decoder.operands()[0], 8);
  i.execute = create_policy;
  return true;
}

/// prefetch.tensormap is decoded with the other tensor map instructions.
bool decode_hint(Decoder &decoder, Instruction &i) {
  const std::string_view opcode = decoder.opcode();
  if (opcode == "prefetch" && !decoder.has("tensormap")) {
    need_form(decoder, "global|local? L1|L2|L2::evict_last|L2::evict_normal", 1);
  } else if (opcode == "nanosleep") {
    need_form(decoder, "u32", 1);
  } else {
    return false;
  }
  i.execute = do_nothing;
  return true;
}

using DecodePart = void (*)(OpcodeCursor &);
bool decode_form(DecodePart part, Decoder &decoder, Instruction &i) {
  OpcodeCursor form(decoder, i);
  part(form);
  form.finish();
  return true;
}

}  // namespace

bool decode_memory(Decoder &decoder, Instruction &i) {
  const std::string_view opcode = decoder.opcode();
  if (opcode == "ld") return decode_form(decode_load, decoder, i);
  if (opcode == "st" && decoder.part(1) != "async" && decoder.part(1) != "bulk")
    return decode_form(decode_store, decoder, i);
  if (opcode == "atom") return decode_form(decode_atom, decoder, i);
  if (opcode == "red" && decoder.part(1) != "async") return decode_form(decode_red, decoder, i);
  if (opcode == "cp" && decoder.part(1) == "async") {
    OpcodeCursor form(decoder, i);
    return decode_async_copy(form);
  }
  if (opcode == "membar" || opcode == "fence") return decode_fence(decoder, i);
  if (opcode == "createpolicy") return decode_policy(decoder, i);
  return decode_hint(decoder, i);
}

}  // namespace softgpu
