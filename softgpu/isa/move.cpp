// mov, cvta and isspacep: PTX ISA, Data Movement and Conversion Instructions.
#include <array>
#include <cstdint>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/elementwise.h"
#include "softgpu/isa/form.h"
#include "softgpu/isa/lane_addresses.h"
#include "softgpu/machine/faults.h"
#include "softgpu/machine/warp.h"
#include "softgpu/machine/wgmma_state.h"

namespace softgpu {
namespace {

struct MoveOperands {
  RegisterSlot to, from;
};

template <class T>
Step move(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<MoveOperands>();
  // The compiler may copy an accumulator of a pending wgmma.
  if (sizeof(T) == 4 && warp.wgmma.owns(o.from)) move_accumulator(warp, o.to, o.from);
  const T *from = warp.row<T>(o.from);
  set_lanes(warp.row<T>(o.to), lanes, [&](int lane) { return from[lane]; });
  return Step::kNext;
}

/// %clock and %globaltimer: the number of executed instructions.  It is updated at the end of a
/// quantum and increases with each read in between.
template <class T>
Step read_clock(Warp &warp, const Instruction &i, Lanes lanes) {
  const T now = static_cast<T>(++warp.num_executed);
  set_lanes(warp.row<T>(i.as<MoveOperands>().to), lanes, [&](int) { return now; });
  return Step::kNext;
}

bool is_clock(const ptx::Operand &operand) {
  return operand.kind == ptx::OperandKind::kSpecial &&
         (operand.name == "%clock" || operand.name == "%clock64" ||
          operand.name == "%globaltimer" || operand.name == "%globaltimer_lo");
}

void decode_plain(OpcodeCursor &form, int width) {
  const bool is_wide = width == 8;
  auto &o = form.instruction.make<MoveOperands>();
  if (is_clock(form.decoder.operands()[1])) {
    form.instruction.execute = is_wide ? read_clock<uint64_t> : read_clock<uint32_t>;
  } else {
    o.from = form.read(1, width);
    form.instruction.execute = is_wide ? move<uint64_t> : move<uint32_t>;
  }
  o.to = form.write(0, width);
}

// Vectors: parts of a register, the first in the lowest bits.

constexpr int kMaxParts = 4;
struct VectorOperands {
  RegisterSlot whole;
  std::array<RegisterSlot, kMaxParts> parts;
};

/// Packs kParts registers of type Part into one.
template <class Whole, class Part, size_t kParts>
Step pack(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<VectorOperands>();
  Whole values[kWarpSize] = {};
  for (size_t k = 0; k < kParts; k++) {
    const uint32_t *part = warp.row<uint32_t>(o.parts[k]);
    for (int lane = 0; lane < kWarpSize; lane++)
      values[lane] |= Whole{static_cast<Part>(part[lane])} << (8 * sizeof(Part) * k);
  }
  set_lanes(warp.row<Whole>(o.whole), lanes, [&](int lane) { return values[lane]; });
  return Step::kNext;
}

/// Unpacks one register into kParts registers of type Part.
template <class Whole, class Part, size_t kParts>
Step unpack(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<VectorOperands>();
  const Whole *whole = warp.row<Whole>(o.whole);
  for (size_t k = 0; k < kParts; k++)
    set_lanes(warp.row<uint32_t>(o.parts[k]), lanes, [&](int lane) {
      return uint32_t{static_cast<Part>(whole[lane] >> (8 * sizeof(Part) * k))};
    });
  return Step::kNext;
}

template <class Whole, class Part>
Handler vector_handler(bool packs) {
  constexpr size_t kParts = sizeof(Whole) / sizeof(Part);
  return packs ? pack<Whole, Part, kParts> : unpack<Whole, Part, kParts>;
}

/// Decodes a vector move; unpacks if the destination is the vector.
void decode_vector(OpcodeCursor &form, int width, bool packs) {
  Decoder &d = form.decoder;
  const auto &parts = d.operands()[packs ? 1 : 0].items;
  const bool is_wide = form.type == Type::kB64;
  if ((!is_wide && form.type != Type::kB32) || (parts.size() != 2 && parts.size() != 4))
    d.unknown("vector");
  auto &o = form.instruction.make<VectorOperands>();
  if (!packs) o.whole = form.read(1, width);
  for (size_t k = 0; k < parts.size(); k++)
    o.parts[k] = packs ? d.read(parts[k], 4) : d.write(parts[k], 4);
  if (packs) o.whole = form.write(0, width);
  const bool has_two = parts.size() == 2;
  form.instruction.execute = is_wide   ? has_two ? vector_handler<uint64_t, uint32_t>(packs)
                                                 : vector_handler<uint64_t, uint16_t>(packs)
                               : has_two ? vector_handler<uint32_t, uint16_t>(packs)
                                       : vector_handler<uint32_t, uint8_t>(packs);
}

// ---- cvta, isspacep

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

}  // namespace

void decode_mov(OpcodeCursor &form) {
  if (form.type == Type::kPred) return void(decode_predicate(form));
  if (!is_scalar(form.type)) form.unknown_type();
  form.need_operands(2);
  const int width = register_width(form.type);
  const auto &operands = form.decoder.operands();
  if (operands[1].kind == ptx::OperandKind::kVector)
    decode_vector(form, width, true);
  else if (operands[0].kind == ptx::OperandKind::kVector)
    decode_vector(form, width, false);
  else
    decode_plain(form, width);
}

/// Decodes cvta.space.u64 and cvta.to.space.u64.
void decode_cvta(OpcodeCursor &form) {
  if (form.type != Type::kU64) form.unknown_type();
  form.need_operands(2);
  const bool to_space = form.take("to");
  const uint64_t window = window_of(need_space(form));
  form.take(form.decoder.part(to_space ? 2 : 1));
  auto &o = form.instruction.make<CvtaOperands>();
  o.window = window;
  o.from = form.read(1, 8);
  o.to = form.write(0, 8);
  form.instruction.execute = to_space && window != 0 ? from_generic : to_generic;
}

/// Decodes isspacep.space.
void decode_isspacep(OpcodeCursor &form) {
  form.need_operands(2);
  auto &o = form.instruction.make<IsspacepOperands>();
  o.space = need_space(form);
  // Constants and parameters have no window.
  if (form.decoder.has("const") || o.space == Space::kParameter)
    form.decoder.unknown("state space");
  o.address = form.read(1, 8);
  o.to = form.write(0, 1);
  form.instruction.execute = isspacep;
}

}  // namespace softgpu
