// Dispatch of statements to the chapters of the PTX ISA.
#include "softgpu/isa/decode.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string_view>

#include "softgpu/isa/operands.h"
#include "softgpu/machine/race_check.h"

namespace softgpu {

namespace {

bool decode_arithmetic(OpcodeCursor &form) {
  if (is_integer(form.type)) return decode_integer(form) || decode_bits(form);
  switch (form.type) {
    case Type::kPred:
      return decode_predicate(form);
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

// ---- fences, and cache hints, which have no effect

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

void decode_fence(Decoder &d, Instruction &i) {
  if (d.part(1) == "proxy" || d.part(1) == "mbarrier_init") return decode_proxy_fence(d, i);
  need_form(
      d, d.opcode() == "membar" ? "cta|gl|sys" : "sc|acq_rel|acquire|release? cta|cluster|gpu|sys",
      0);
  i.execute = fence;
}

void decode_policy(Decoder &d, Instruction &i) {
  const std::string priority =
      "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged";
  if (d.has("cvt"))
    need_form(d, "cvt L2 b64", 2);
  else if (d.has("range"))
    need_form(d, "range global? " + priority + " " + priority + "? b64", 4);
  else
    need_form(d, "fractional " + priority + " " + priority + "? b64", 1, 2);
  i.make<RegisterSlot>() = d.write(d.operands()[0], 8);
  i.execute = create_policy;
}

void decode_prefetch(Decoder &d, Instruction &i) {
  if (d.has("tensormap")) return decode_map_prefetch(d, i);
  need_form(d, "global|local? L1|L2|L2::evict_last|L2::evict_normal", 1);
  i.execute = do_nothing;
}

void decode_sleep(Decoder &d, Instruction &i) {
  need_form(d, "u32", 1);
  i.execute = do_nothing;
}

// ---- opcodes, except those of arithmetic

using Decode = void (*)(Decoder &, Instruction &);

template <void (*kDecode)(OpcodeCursor &)>
void by_cursor(Decoder &d, Instruction &i) {
  OpcodeCursor form(d, i);
  kDecode(form);
  form.finish();
}

void decode_copy(Decoder &d, Instruction &i) {
  const Decode decode = !d.has("bulk")                  ? by_cursor<decode_async_copy>
                        : d.part(3).ends_with("_group") ? decode_bulk_group
                        : d.has("tensor")               ? decode_tensor_copy
                                                        : decode_plain_copy;
  decode(d, i);
}

struct NamedDecode {
  std::string_view name;
  Decode decode;
  bool is_collective = false;
};
constexpr NamedDecode kOpcodes[] = {
    {"activemask", decode_active_mask},
    {"atom", by_cursor<decode_atomic>},
    {"bar", decode_barrier, true},
    {"barrier", decode_barrier, true},
    {"bra", decode_branch},
    {"brkpt", decode_branch},
    {"brx", decode_indexed_branch, true},
    {"cp", decode_copy},
    {"createpolicy", decode_policy},
    {"cvt", by_cursor<decode_cvt>},
    {"cvta", by_cursor<decode_cvta>},
    {"elect", decode_elect, true},
    {"exit", decode_branch},
    {"fence", decode_fence},
    {"getctarank", decode_cluster_address},
    {"griddepcontrol", decode_grid_dependency},
    {"isspacep", by_cursor<decode_isspacep>},
    {"ld", by_cursor<decode_access>},
    {"ldmatrix", decode_matrix_rows, true},
    {"mapa", decode_cluster_address},
    {"match", decode_match, true},
    {"mbarrier", decode_mbarrier},
    {"membar", decode_fence},
    {"mma", decode_mma, true},
    {"mov", by_cursor<decode_mov>},
    {"nanosleep", decode_sleep},
    {"prefetch", decode_prefetch},
    {"red", by_cursor<decode_atomic>},
    {"redux", decode_reduce, true},
    {"ret", decode_branch},
    {"selp", by_cursor<decode_selp>},
    {"set", by_cursor<decode_set>},
    {"setmaxnreg", decode_set_max_registers, true},
    {"setp", by_cursor<decode_setp>},
    {"shfl", decode_shuffle, true},
    {"st", by_cursor<decode_access>},
    {"stmatrix", decode_matrix_rows, true},
    {"tensormap", decode_tensor_map},
    {"trap", decode_branch},
    {"vote", decode_vote, true},
    {"wgmma", decode_wgmma, true},
    {"wmma", decode_wmma, true},
};
static_assert(std::ranges::is_sorted(kOpcodes, {}, &NamedDecode::name));

}  // namespace

void decode(Decoder &d, Instruction &i) {
  const auto *known = std::ranges::lower_bound(kOpcodes, d.opcode(), {}, &NamedDecode::name);
  if (known != std::end(kOpcodes) && known->name == d.opcode()) {
    i.is_collective = known->is_collective;
    return known->decode(d, i);
  }
  OpcodeCursor form(d, i);
  if (!decode_arithmetic(form)) d.unknown("unknown instruction");
}

}  // namespace softgpu
