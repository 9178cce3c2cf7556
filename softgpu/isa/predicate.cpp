// Logic instructions and mov for predicates, which are sets of lanes: PTX ISA, Logic and Shift
// Instructions.
#include <cstdint>

#include "softgpu/isa/arithmetic.h"
#include "softgpu/isa/form.h"
#include "softgpu/machine/warp.h"

namespace softgpu {
namespace {

struct PredicateOperands {
  RegisterSlot to, a, b;
  Lanes a_flip, b_flip;  ///< negation of the operand: !%p
};

template <auto kOp>
Step combine(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<PredicateOperands>();
  const Lanes a = warp.predicate(o.a) ^ o.a_flip, b = warp.predicate(o.b) ^ o.b_flip;
  warp.set_predicate(o.to, lanes, kOp(a, b));
  return Step::kNext;
}

RegisterSlot read_flipped(OpcodeCursor &form, size_t operand, Lanes *flip) {
  bool is_negated;
  const RegisterSlot row =
      form.decoder.read_predicate(form.decoder.operands()[operand], &is_negated);
  *flip = is_negated ? kAllLanes : 0;
  return row;
}

/// Decodes an operation with one or two operands.
template <auto kOp, size_t kNumOperands = 2>
void decode_op(OpcodeCursor &form) {
  form.need_operands(1 + kNumOperands);
  PredicateOperands o{};
  o.a = read_flipped(form, 1, &o.a_flip);
  o.b = read_flipped(form, kNumOperands, &o.b_flip);
  o.to = form.write(0, 1);
  form.instruction.make<PredicateOperands>() = o;
  form.instruction.execute = combine<kOp>;
}

constexpr OpcodeEntry kOpcodes[] = {
    {"and", decode_op<[](Lanes a, Lanes b) { return a & b; }>},
    {"mov", decode_op<[](Lanes a, Lanes) { return a; }, 1>},
    {"not", decode_op<[](Lanes a, Lanes) { return ~a; }, 1>},
    {"or", decode_op<[](Lanes a, Lanes b) { return a | b; }>},
    {"xor", decode_op<[](Lanes a, Lanes b) { return a ^ b; }>},
};
static_assert(is_sorted(kOpcodes));

}  // namespace

bool decode_predicate(OpcodeCursor &form) {
  return decode_by(kOpcodes, form);
}

}  // namespace softgpu
