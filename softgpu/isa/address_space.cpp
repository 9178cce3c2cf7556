// cvta and isspacep: PTX ISA, Data Movement and Conversion Instructions.
//
// A generic address is a global address unless it is in the window of shared or local memory.
#include <cstdint>

#include "softgpu/isa/arithmetic.h"
#include "softgpu/isa/form.h"
#include "softgpu/isa/lane_addresses.h"
#include "softgpu/machine/faults.h"

namespace softgpu {
namespace {

/// Constants and parameters are in process memory, like global memory.
uint64_t window_of(Space space) {
  switch (space) {
    case Space::kLocal:
      return kLocalWindow;
    case Space::kShared:
    case Space::kSharedCluster:
      return kSharedWindow;
    default:
      return 0;
  }
}
Space need_space(const OpcodeCursor &form) {
  const Space space = space_of(form.decoder);
  if (space == Space::kGeneric) form.decoder.unknown("state space");
  return space;
}

struct CvtaOperands {
  RegisterSlot to, from;
  uint64_t window;
};

Step to_generic(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<CvtaOperands>();
  const uint64_t *from = warp.row<uint64_t>(o.from);
  set_lanes(warp.row<uint64_t>(o.to), lanes, [&](int lane) { return from[lane] + o.window; });
  return Step::kNext;
}

/// cvta.to for a space with a window.
Step from_generic(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<CvtaOperands>();
  const uint64_t *from = warp.row<uint64_t>(o.from);
  const Lanes outside =
      lanes & lanes_where([&](int lane) { return (from[lane] & kWindowMask) != o.window; });
  if (outside != 0) {
    const int lane = first_lane(outside);
    violation(warp, i, lane,
              "converts %#llx to an address of a state space that does not contain it",
              static_cast<unsigned long long>(from[lane]));
  }
  set_lanes(warp.row<uint64_t>(o.to), lanes, [&](int lane) { return from[lane] - o.window; });
  return Step::kNext;
}

/// Decodes cvta.space.u64 and cvta.to.space.u64.
void decode_cvta(OpcodeCursor &form) {
  if (form.type != Type::kU64) form.unknown_type();
  form.need_operands(2);
  const bool to_space = form.take("to");
  const uint64_t window = window_of(need_space(form));
  form.take(form.decoder.part(to_space ? 2 : 1));
  CvtaOperands o{};
  o.window = window;
  o.from = form.read(1, 8);
  o.to = form.write(0, 8);
  form.instruction.make<CvtaOperands>() = o;
  form.instruction.execute = to_space && window != 0 ? from_generic : to_generic;
}

struct IsspacepOperands {
  RegisterSlot to, address;
  Space space;
};

Step isspacep(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<IsspacepOperands>();
  const uint64_t *address = warp.row<uint64_t>(o.address);
  // The window of shared::cta is that of the block's rank in the cluster.
  const uint64_t mask = o.space == Space::kShared ? ~uint64_t{kOffsetMask} : kWindowMask;
  const auto in = [&](uint64_t window, uint64_t of) {
    return lanes_where([&](int lane) { return (address[lane] & of) == window; });
  };
  Lanes result = 0;
  switch (o.space) {
    case Space::kGlobal:
      result = ~(in(kSharedWindow, kWindowMask) | in(kLocalWindow, kWindowMask));
      break;
    case Space::kShared:
      result = in(kSharedWindow | uint64_t{warp.block->smem.rank()} << kRankShift, mask);
      break;
    default:
      result = in(window_of(o.space), mask);
  }
  warp.set_predicate(o.to, lanes, result);
  return Step::kNext;
}

/// Decodes isspacep.space.
void decode_isspacep(OpcodeCursor &form) {
  form.need_operands(2);
  IsspacepOperands o{};
  o.space = need_space(form);
  // Constants and parameters have no window.
  if (form.decoder.has("const") || o.space == Space::kParameter)
    form.decoder.unknown("state space");
  o.address = form.read(1, 8);
  o.to = form.write(0, 1);
  form.instruction.make<IsspacepOperands>() = o;
  form.instruction.execute = isspacep;
}

constexpr OpcodeEntry kOpcodes[] = {
    {"cvta", decode_cvta},
    {"isspacep", decode_isspacep},
};
static_assert(is_sorted(kOpcodes));

}  // namespace

bool decode_address_space(OpcodeCursor &form) {
  return decode_by(kOpcodes, form);
}

}  // namespace softgpu
