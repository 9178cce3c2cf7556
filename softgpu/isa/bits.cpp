// Logic and Shift Instructions of the PTX ISA, and integer instructions on bits.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/elementwise.h"

namespace softgpu {
namespace {

template <class T>
constexpr uint32_t kBits = 8 * sizeof(T);

constexpr auto bit_and = []<class T>(T a, T b) { return static_cast<T>(a & b); };
constexpr auto bit_or = []<class T>(T a, T b) { return static_cast<T>(a | b); };
constexpr auto bit_xor = []<class T>(T a, T b) { return static_cast<T>(a ^ b); };
constexpr auto bit_not = []<class T>(T a) { return static_cast<T>(~a); };

// A shift by the width or more shifts out all bits.

constexpr auto shift_left = []<class T>(T a, uint32_t by) {
  return static_cast<T>(by < kBits<T> ? a << (by & (kBits<T> - 1)) : 0);
};
constexpr auto shift_right = []<class T>(T a, uint32_t by) {
  if (std::is_signed_v<T>) return static_cast<T>(a >> std::min(by, kBits<T> - 1));
  return static_cast<T>(by < kBits<T> ? a >> (by & (kBits<T> - 1)) : 0);
};

/// shf: returns the upper (left shift) or lower half of the shifted b:a.
template <bool kLeft, bool kWrap>
uint32_t funnel_shift(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t by = kWrap ? c & 31 : std::min(c, 32u);
  const uint64_t both = uint64_t{b} << 32 | a;
  return static_cast<uint32_t>(kLeft ? both << by >> 32 : both >> by);
}

/// Returns a mask of the lower n bits; all bits for n >= the width.
template <class T>
T low_mask(uint32_t n) {
  return n >= kBits<T> ? static_cast<T>(-1) : static_cast<T>((T{1} << (n & (kBits<T> - 1))) - 1);
}

constexpr auto extract_field = []<class T>(T a, uint32_t b, uint32_t c) {
  using U = std::make_unsigned_t<T>;
  const uint32_t position = b & 255, length = c & 255;
  // Bits beyond the register width are filled like bits beyond the field: with the sign or 0.
  const uint32_t last = std::min(position + length - 1, kBits<T> - 1);
  const bool negative = std::is_signed_v<T> && length > 0 && (a >> last & 1) != 0;
  const U inside = position < kBits<T> ? low_mask<U>(std::min(length, kBits<T> - position)) : U{0};
  const U field = shift_right(static_cast<U>(a), position) & inside;
  return static_cast<T>(negative ? field | static_cast<U>(~inside) : field);
};

/// Returns b with a field replaced by the lower bits of a.
constexpr auto insert_field = []<class T>(T a, T b, uint32_t c, uint32_t d) {
  const uint32_t position = c & 255, length = d & 255;
  const T field = shift_left(low_mask<T>(length), position);
  return static_cast<T>((b & ~field) | (shift_left(a, position) & field));
};

/// bmsk: returns `length` ones from bit `position` on.
template <bool kWrap>
uint32_t bit_mask(uint32_t position, uint32_t length) {
  const uint32_t p = kWrap ? position & 31 : position, n = kWrap ? length & 31 : length;
  return shift_left(low_mask<uint32_t>(n), p);
}

constexpr auto count_ones = []<class T>(T a) { return static_cast<uint32_t>(std::popcount(a)); };
constexpr auto count_leading_zeros = []<class T>(T a) {
  return static_cast<uint32_t>(std::countl_zero(a));
};
/// Returns the position of the highest bit that differs from the sign, or its distance from the
/// top; all ones if there is none.
template <bool kShiftAmount>
constexpr auto find_bit = []<class T>(T a) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(a < 0 ? ~a : a);
  const uint32_t zeros = count_leading_zeros(bits);
  return bits == 0 ? ~0u : kShiftAmount ? zeros : kBits<T> - 1 - zeros;
};

constexpr auto reverse_bits = []<class T>(T a) {
  constexpr T kPairs = static_cast<T>(0x5555555555555555),
              kNibbles = static_cast<T>(0x3333333333333333),
              kBytes = static_cast<T>(0x0F0F0F0F0F0F0F0F);
  a = (a & kPairs) << 1 | (a >> 1 & kPairs);
  a = (a & kNibbles) << 2 | (a >> 2 & kNibbles);
  a = (a & kBytes) << 4 | (a >> 4 & kBytes);
  return static_cast<T>(sizeof(T) == 8 ? __builtin_bswap64(a)
                                       : __builtin_bswap32(static_cast<uint32_t>(a)));
};

/// prmt: selects each byte of the result from the eight bytes of b:a, or its sign bit, by 4 bits of
/// the selector.
uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t s = selector >> (4 * i);
    const uint32_t byte = both >> (8 * (s & 7)) & 255;
    const uint32_t sign = byte & 128 ? 255 : 0;
    result |= (s & 8 ? sign : byte) << (8 * i);
  }
  return result;
}

template <auto kOp>
void decode_typeless(OpcodeCursor &form) {
  decode_one_of<kOp, Type::kB16, Type::kB32, Type::kB64>(form);
}
/// Decodes an operation without 16-bit variants.
template <auto kOp>
void decode_wide_typeless(OpcodeCursor &form) {
  decode_one_of<kOp, Type::kB32, Type::kB64>(form);
}
template <auto kOp>
void decode_wide_integer(OpcodeCursor &form) {
  decode_one_of<kOp, Type::kU32, Type::kS32, Type::kU64, Type::kS64>(form);
}

void decode_shr(OpcodeCursor &form) {
  using enum Type;
  decode_one_of<shift_right, kB16, kU16, kS16, kB32, kU32, kS32, kB64, kU64, kS64>(form);
}

void need_b32(const OpcodeCursor &form) {
  if (form.type != Type::kB32) form.unknown_type();
}

void decode_shf(OpcodeCursor &form) {
  need_b32(form);
  with_flags([&](auto left, auto wrap) { decode_elementwise<funnel_shift<left, wrap>>(form); },
             form.need_any({"r", "l"}) == 1, form.need_any({"clamp", "wrap"}) == 1);
}

void decode_bmsk(OpcodeCursor &form) {
  need_b32(form);
  with_flags([&](auto wrap) { decode_elementwise<bit_mask<wrap>>(form); },
             form.need_any({"clamp", "wrap"}) == 1);
}

void decode_bfind(OpcodeCursor &form) {
  with_flags([&](auto shift_amount) { decode_wide_integer<find_bit<shift_amount>>(form); },
             form.take("shiftamt"));
}

void decode_prmt(OpcodeCursor &form) {
  need_b32(form);
  decode_elementwise<permute_bytes>(form);
}

struct Lop3Operands {
  RegisterSlot to, a, b, c;
  uint8_t table;  ///< result for each of the 8 combinations of bits of a, b and c
};

Step lop3(Warp &warp, const Instruction &i, Lanes lanes) {
  const auto &o = i.as<Lop3Operands>();
  const uint32_t *a = warp.row<uint32_t>(o.a), *b = warp.row<uint32_t>(o.b),
                 *c = warp.row<uint32_t>(o.c);
  uint32_t entries[8];
  for (int k = 0; k < 8; k++) entries[k] = o.table >> k & 1 ? ~0u : 0;
  // Select by the bits of c, then b, then a.
  const auto choose = [](uint32_t by, uint32_t if_0, uint32_t if_1) {
    return if_0 ^ (by & (if_0 ^ if_1));
  };
  set_lanes(warp.row<uint32_t>(o.to), lanes, [&](int l) {
    const uint32_t a0b0 = choose(c[l], entries[0], entries[1]);
    const uint32_t a0b1 = choose(c[l], entries[2], entries[3]);
    const uint32_t a1b0 = choose(c[l], entries[4], entries[5]);
    const uint32_t a1b1 = choose(c[l], entries[6], entries[7]);
    return choose(a[l], choose(b[l], a0b0, a0b1), choose(b[l], a1b0, a1b1));
  });
  return Step::kNext;
}

void decode_lop3(OpcodeCursor &form) {
  need_b32(form);
  form.need_operands(5);
  const ptx::Operand &table = form.decoder.operands()[4];
  if (table.kind != ptx::OperandKind::kImmediate || table.bits > 255)
    form.decoder.unknown("table of lop3");
  const RegisterSlot a = form.read(1, 4), b = form.read(2, 4), c = form.read(3, 4);
  form.instruction.make<Lop3Operands>() = {form.write(0, 4), a, b, c,
                                           static_cast<uint8_t>(table.bits)};
  form.instruction.execute = lop3;
}

constexpr OpcodeEntry kOpcodes[] = {
    {"and", decode_typeless<bit_and>},
    {"bfe", decode_wide_integer<extract_field>},
    {"bfi", decode_wide_typeless<insert_field>},
    {"bfind", decode_bfind},
    {"bmsk", decode_bmsk},
    {"brev", decode_wide_typeless<reverse_bits>},
    {"clz", decode_wide_typeless<count_leading_zeros>},
    {"lop3", decode_lop3},
    {"not", decode_typeless<bit_not>},
    {"or", decode_typeless<bit_or>},
    {"popc", decode_wide_typeless<count_ones>},
    {"prmt", decode_prmt},
    {"shf", decode_shf},
    {"shl", decode_typeless<shift_left>},
    {"shr", decode_shr},
    {"xor", decode_typeless<bit_xor>},
};
static_assert(is_sorted(kOpcodes));

}  // namespace

bool decode_bits(OpcodeCursor &form) {
  return decode_by(kOpcodes, form);
}

}  // namespace softgpu
