// mov, and the dispatch of moves, conversions and predicates: PTX ISA, Data Movement and Conversion
// Instructions.
#include <array>
#include <cstdint>
#include <string_view>

#include "softgpu/isa/arithmetic.h"
#include "softgpu/isa/elementwise.h"
#include "softgpu/isa/form.h"
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
  MoveOperands o{};
  if (is_clock(form.decoder.operands()[1])) {
    form.instruction.execute = is_wide ? read_clock<uint64_t> : read_clock<uint32_t>;
  } else {
    o.from = form.read(1, width);
    form.instruction.execute = is_wide ? move<uint64_t> : move<uint32_t>;
  }
  o.to = form.write(0, width);
  form.instruction.make<MoveOperands>() = o;
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
  VectorOperands o{};
  if (!packs) o.whole = form.read(1, width);
  for (size_t k = 0; k < parts.size(); k++)
    o.parts[k] = packs ? d.read(parts[k], 4) : d.write(parts[k], 4);
  if (packs) o.whole = form.write(0, width);
  form.instruction.make<VectorOperands>() = o;
  const bool has_two = parts.size() == 2;
  form.instruction.execute = is_wide   ? has_two ? vector_handler<uint64_t, uint32_t>(packs)
                                                 : vector_handler<uint64_t, uint16_t>(packs)
                               : has_two ? vector_handler<uint32_t, uint16_t>(packs)
                                       : vector_handler<uint32_t, uint8_t>(packs);
}

void decode_mov(OpcodeCursor &form) {
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

constexpr OpcodeEntry kOpcodes[] = {{"mov", decode_mov}};

}  // namespace

bool decode_move(Decoder &decoder, Instruction &instruction) {
  OpcodeCursor form(decoder, instruction);
  if (form.type == Type::kPred) return decode_predicate(form);
  return decode_by(kOpcodes, form) || decode_convert(form) || decode_address_space(form);
}

}  // namespace softgpu
