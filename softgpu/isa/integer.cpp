// PTX ISA, Integer Arithmetic Instructions, except those on bits (bits.cpp).
#include <algorithm>
#include <cstdint>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/elementwise.h"

namespace softgpu {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;
/// Result type of mul.wide.
template <class T>
using Twice =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                       Wide<T>>;

// Sums and products wrap around; C++ defines this only for unsigned types.

constexpr auto add = []<class T>(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
};
constexpr auto subtract = []<class T>(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
};
constexpr auto multiply_low = []<class T>(T a, T b) {
  return static_cast<T>(1u * static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
};
constexpr auto multiply_high = []<class T>(T a, T b) {
  return static_cast<T>(Wide<T>{a} * Wide<T>{b} >> (8 * sizeof(T)));
};
constexpr auto multiply_wide = []<class T>(T a, T b) { return Twice<T>{a} * Twice<T>{b}; };

template <auto kProduct>
constexpr auto multiply_add =
    []<class T>(T a, T b, decltype(kProduct(T{}, T{})) c) { return add(kProduct(a, b), c); };

/// Division by zero returns all ones, like GPUs; PTX does not specify it.  Up to 32 bits, the
/// quotient is computed in double precision, which vectorizes.
constexpr auto divide = []<class T>(T a, T b) -> T {
  if constexpr (sizeof(T) < 8) {
    const double quotient = static_cast<double>(a) / static_cast<double>(b == 0 ? T{1} : b);
    // -2^31 / -1 does not fit in an int32_t.
    const T wrapped = static_cast<T>(static_cast<int64_t>(quotient));
    return b == 0 ? static_cast<T>(-1) : wrapped;
  } else {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return subtract(T{0}, a);
    return a / b;
  }
};
constexpr auto remainder = []<class T>(T a, T b) {
  return b == 0 ? a : subtract(a, multiply_low(divide(a, b), b));
};

constexpr auto minimum = []<class T>(T a, T b) { return std::min(a, b); };
constexpr auto maximum = []<class T>(T a, T b) { return std::max(a, b); };
constexpr auto negate = []<class T>(T a) { return subtract(T{0}, a); };
constexpr auto absolute = []<class T>(T a) { return a < 0 ? negate(a) : a; };
/// sad: c + |a - b|.
constexpr auto add_difference = []<class T>(T a, T b, T c) {
  return add(c, a < b ? subtract(b, a) : subtract(a, b));
};
template <auto kOp>
void decode_typed(OpcodeCursor &form) {
  using enum Type;
  decode_one_of<kOp, kU16, kS16, kU32, kS32, kU64, kS64>(form);
}
template <auto kOp>
void decode_signed(OpcodeCursor &form) {
  decode_one_of<kOp, Type::kS16, Type::kS32, Type::kS64>(form);
}

template <auto kOp>
void decode_sum(OpcodeCursor &form) {
  if (form.decoder.has("cc")) return decode_extended_precision(form);
  decode_typed<kOp>(form);
}

/// mul, and mad, which adds to the same products.
template <auto kLow, auto kHigh, auto kWide>
void decode_product(OpcodeCursor &form) {
  using enum Type;
  if (form.decoder.has("cc")) return decode_extended_precision(form);
  switch (form.need_any({"lo", "hi", "wide"})) {
    case 0:
      return decode_typed<kLow>(form);
    case 1:
      return decode_typed<kHigh>(form);
    default:
      return decode_one_of<kWide, kU16, kS16, kU32, kS32>(form);
  }
}

constexpr OpcodeEntry kOpcodes[] = {
    {"abs", decode_signed<absolute>},
    {"add", decode_sum<add>},
    {"addc", decode_extended_precision},
    {"div", decode_typed<divide>},
    {"mad", decode_product<multiply_add<multiply_low>, multiply_add<multiply_high>,
                           multiply_add<multiply_wide>>},
    {"madc", decode_extended_precision},
    {"max", decode_typed<maximum>},
    {"min", decode_typed<minimum>},
    {"mul", decode_product<multiply_low, multiply_high, multiply_wide>},
    {"neg", decode_signed<negate>},
    {"rem", decode_typed<remainder>},
    {"sad", decode_typed<add_difference>},
    {"sub", decode_sum<subtract>},
    {"subc", decode_extended_precision},
};
static_assert(is_sorted(kOpcodes));

}  // namespace

bool decode_integer(OpcodeCursor &form) {
  return decode_by(kOpcodes, form);
}

// ---- pairs of 16-bit integers

namespace pairs {

constexpr auto add = [](int a, int b) { return a + b; };
constexpr auto minimum = [](int a, int b) { return std::min(a, b); };
constexpr auto maximum = [](int a, int b) { return std::max(a, b); };
template <class T, auto kOp>
uint32_t both(uint32_t a, uint32_t b) {
  const int low = kOp(static_cast<T>(a), static_cast<T>(b));
  const int high = kOp(static_cast<T>(a >> 16), static_cast<T>(b >> 16));
  return (static_cast<uint32_t>(low) & 0xFFFF) | static_cast<uint32_t>(high) << 16;
}

template <auto kOp>
void decode_pair(OpcodeCursor &form) {
  if (form.type == Type::kU16x2)
    decode_elementwise<both<uint16_t, kOp>>(form);
  else
    decode_elementwise<both<int16_t, kOp>>(form);
}
constexpr OpcodeEntry kOpcodes[] = {
    {"add", decode_pair<add>},
    {"max", decode_pair<maximum>},
    {"min", decode_pair<minimum>},
};
static_assert(is_sorted(kOpcodes));

}  // namespace pairs

bool decode_packed_integer(OpcodeCursor &form) {
  return decode_by(pairs::kOpcodes, form);
}

// ---- carries

namespace carries {

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

}  // namespace carries

void decode_extended_precision(OpcodeCursor &form) {
  using namespace carries;
  using enum Type;
  const std::string_view opcode = form.decoder.opcode();
  const bool multiplies = opcode.starts_with("mad"), subtracts = opcode.starts_with("sub");
  const bool is_high = multiplies && form.need_any({"lo", "hi"}) == 1;
  form.need_operands(multiplies ? 4 : 3);
  const int width = register_width(form.type);
  auto &o = form.instruction.make<CarryOperands>();
  o.a = form.read(1, width);
  o.b = form.read(2, width);
  o.c = multiplies ? form.read(3, width) : o.b;
  o.to = form.write(0, width);
  o.carry = form.decoder.carry();
  o.takes_carry = opcode.ends_with('c');
  o.gives_carry = form.take("cc");
  form.with_type<kU32, kS32, kU64, kS64>(form.type, [&](auto type) {
    using N = Native<type()>;
    using T = std::make_unsigned_t<N>;
    form.instruction.execute = is_high      ? execute<T, add_high_product<N>>
                               : multiplies ? execute<T, add_low_product>
                               : subtracts  ? execute<T, carries::subtract>
                                            : execute<T, carries::add>;
  });
}

}  // namespace softgpu
