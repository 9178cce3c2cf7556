// Sums of multiple registers with a condition code: PTX ISA, Extended-Precision Integer Arithmetic
// Instructions.
#include <cstdint>

#include "softgpu/isa/arithmetic.h"
#include "softgpu/isa/elementwise.h"

namespace softgpu {
namespace {

struct CarryOperands {
  RegisterSlot to, a, b, c;  ///< c: for mad
  RegisterSlot carry;
  bool takes_carry, gives_carry;
};

template <class T>
struct Sum {
  T value;
  bool carry;
};

constexpr auto add = []<class T>(T a, T b, T, bool carry) -> Sum<T> {
  const T partial = a + b, sum = partial + carry;
  return {sum, partial < a || sum < partial};
};
/// The carry flag of a subtraction is a borrow.
constexpr auto subtract = []<class T>(T a, T b, T, bool borrow) -> Sum<T> {
  const T partial = a - b, difference = partial - borrow;
  return {difference, a < b || partial < T{borrow}};
};
constexpr auto add_low_product = []<class T>(T a, T b, T c, bool carry) -> Sum<T> {
  return add(a * b, c, c, carry);
};
/// Adds c and the upper half of a product; N may be signed.
template <class N>
constexpr auto add_high_product = []<class T>(T a, T b, T c, bool carry) -> Sum<T> {
  const auto product = Wide<N>{static_cast<N>(a)} * Wide<N>{static_cast<N>(b)};
  return add(static_cast<T>(product >> (8 * sizeof(T))), c, c, carry);
};

template <class T, auto kOp>
[[gnu::flatten]] Step execute(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<CarryOperands>();
  const T *a = warp.row<T>(o.a), *b = warp.row<T>(o.b), *c = warp.row<T>(o.c);
  const Lanes carry_in = o.takes_carry ? warp.predicate(o.carry) : 0;
  T values[kWarpSize];
  const Lanes carry_out = lanes_where([&](int lane) {
    const Sum<T> sum = kOp(a[lane], b[lane], c[lane], (carry_in >> lane & 1) != 0);
    values[lane] = sum.value;
    return sum.carry;
  });
  set_lanes(warp.row<T>(o.to), lanes, [&](int lane) { return values[lane]; });
  if (o.gives_carry) warp.set_predicate(o.carry, lanes, carry_out);
  return Step::kNext;
}

}  // namespace

void decode_extended_precision(OpcodeCursor &form) {
  using enum Type;
  const std::string_view opcode = form.decoder.opcode();
  const bool multiplies = opcode.starts_with("mad"), subtracts = opcode.starts_with("sub");
  const bool is_high = multiplies && form.need_any({"lo", "hi"}) == 1;
  form.need_operands(multiplies ? 4 : 3);
  const int width = register_width(form.type);
  CarryOperands o{};
  o.a = form.read(1, width);
  o.b = form.read(2, width);
  o.c = multiplies ? form.read(3, width) : o.b;
  o.to = form.write(0, width);
  o.carry = form.decoder.carry();
  o.takes_carry = opcode.ends_with('c');
  o.gives_carry = form.take("cc");
  form.instruction.make<CarryOperands>() = o;
  form.with_type<kU32, kS32, kU64, kS64>(form.type, [&](auto type) {
    using N = Native<type()>;
    using T = std::make_unsigned_t<N>;
    form.instruction.execute = is_high      ? execute<T, add_high_product<N>>
                               : multiplies ? execute<T, add_low_product>
                               : subtracts  ? execute<T, subtract>
                                            : execute<T, add>;
  });
}

}  // namespace softgpu
