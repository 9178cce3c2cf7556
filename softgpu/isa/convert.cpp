// cvt: PTX ISA, Data Movement and Conversion Instructions.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/elementwise.h"
#include "softgpu/isa/float_value.h"
#include "softgpu/isa/rounding.h"

namespace softgpu {
namespace {

bool is_integer_value(Type type) {
  return (type >= Type::kU16 && type <= Type::kS16) || (type >= Type::kU32 && type <= Type::kS32) ||
         (type >= Type::kU64 && type <= Type::kS64) || type == Type::kU8 || type == Type::kS8;
}
bool is_float_value(Type type) {
  return type == Type::kF16 || type == Type::kBf16 || type == Type::kF32 || type == Type::kF64;
}

/// Calls f with a type constant for an integer type.
template <class F>
void with_integer_type(OpcodeCursor &form, Type type, F &&f) {
  using enum Type;
  form.with_type<kU8, kS8, kU16, kS16, kU32, kS32, kU64, kS64>(type, f);
}
/// Calls f with the value class (float_value.h) of a floating-point source.
template <class F>
void with_float_source(OpcodeCursor &form, bool flushes, F &&f) {
  switch (form.type) {
    case Type::kF16:
      return f(Half<Fp16>());
    case Type::kBf16:
      return f(Half<Bf16>());
    case Type::kF64:
      return f(Plain<double>());
    default:
      return flushes ? f(FlushedFloat()) : f(Plain<float>());
  }
}

// ---- Integers to integers.

/// Integer type: width and signedness.
struct Layout {
  uint8_t bits;
  bool is_signed;

  uint64_t mask() const { return ~uint64_t{0} >> (64 - bits); }
  uint64_t sign() const { return is_signed ? uint64_t{1} << (bits - 1) : 0; }
};
Layout layout_of(OpcodeCursor &form, Type type) {
  Layout layout{};
  with_integer_type(form, type, [&](auto t) {
    layout = {8 * sizeof(Native<t>), std::is_signed_v<Native<t>>};
  });
  return layout;
}

/// Extends the lower bits of a word by the sign or zeros of an integer type.
template <class W>
class Extension {
 public:
  explicit Extension(const Layout &l)
      : mask_(static_cast<W>(l.mask())), sign_(static_cast<W>(l.sign())) {}
  W of(W word) const { return ((word & mask_) ^ sign_) - sign_; }

 private:
  W mask_, sign_;
};

struct IntegerOperands {
  RegisterSlot to, from;
  Layout to_layout, from_layout;
  uint32_t kept;  ///< mask of the result: a 16-bit register has an upper half of 0
};

/// Converts F to T, the types of the registers, which may be wider than the operand types.
template <class T, class F>
Step convert(Warp &warp, const Instruction &i, Lanes lanes) {
  using Wide = std::conditional_t<sizeof(T) < sizeof(F), F, T>;
  const auto &o = i.as<IntegerOperands>();
  const F *from = warp.row<F>(o.from);
  const Extension<Wide> source(o.from_layout), result(o.to_layout);
  const T kept = sizeof(T) == 8 ? ~T{0} : T{o.kept};
  set_lanes(warp.row<T>(o.to), lanes,
            [&](int lane) { return static_cast<T>(result.of(source.of(from[lane]))) & kept; });
  return Step::kNext;
}

void decode_integer_to_integer(OpcodeCursor &form, Type to) {
  form.need_operands(2);
  const auto &operands = form.decoder.operands();
  const auto width = [&](size_t k, Type type) {
    return std::max(register_width(type), int{operands[k].width});
  };
  const int to_width = width(0, to), from_width = width(1, form.type);
  auto &o = form.instruction.make<IntegerOperands>();
  o.to_layout = layout_of(form, to);
  o.from_layout = layout_of(form, form.type);
  o.kept = operands[0].is_half ? 0xFFFF : ~0u;
  o.from = form.read(1, from_width);
  o.to = form.write(0, to_width);
  with_flags(
      [&](auto to_wide, auto from_wide) {
        using T = std::conditional_t<to_wide, uint64_t, uint32_t>;
        using F = std::conditional_t<from_wide, uint64_t, uint32_t>;
        form.instruction.execute = convert<T, F>;
      },
      to_width == 8, from_width == 8);
}

// ---- Integers to floating point.

template <class To, class From>
To integer_to_float(From from) {
  return static_cast<To>(from);
}
template <class Format, class From>
uint32_t integer_to_half(From from) {
  const bool negative = from < 0;
  const uint64_t bits = static_cast<uint64_t>(from);
  const double size = to_odd_double(negative ? 0 - bits : bits);
  return Format::narrow(narrow_to_odd(negative ? -size : size));
}

void decode_integer_to_float(OpcodeCursor &form, Type to) {
  const int rounding = need_rounding(form);
  if (register_width(to) == 4 && to != Type::kF32 && rounding != FE_TONEAREST)
    form.decoder.unknown("rounding mode");
  with_integer_type(form, form.type, [&](auto type) {
    using From = Native<type>;
    if (to == Type::kF32) decode_elementwise<integer_to_float<float, From>>(form);
    if (to == Type::kF64) decode_elementwise<integer_to_float<double, From>>(form);
    if (to == Type::kF16) decode_elementwise<integer_to_half<Fp16, From>>(form);
    if (to == Type::kBf16) decode_elementwise<integer_to_half<Bf16, From>>(form);
  });
  set_rounding(form, rounding);
}

// ---- Floating point to integers.

/// Converts with clamping.  A NaN becomes 0, or the highest bit if either type has 64 bits.  Uses
/// the rounding mode of the processor, which is set to that of the instruction.
template <class To, class From>
To round_to_integer(From from) {
  using Limits = std::numeric_limits<To>;
  constexpr bool kHas64Bits = sizeof(To) == 8 || sizeof(From) == 8;
  constexpr To kOfNan = static_cast<To>(kHas64Bits ? uint64_t{1} << (8 * sizeof(To) - 1) : 0);
  const double x = from, rounded = std::nearbyint(x);
  if constexpr (sizeof(To) < 8) {
    const double low = Limits::min(), high = Limits::max();
    const double limited = rounded > low ? std::min(rounded, high) : low;
    return x != x ? kOfNan : static_cast<To>(static_cast<int64_t>(limited));
  } else {
    constexpr double kEnd = std::is_signed_v<To> ? 0x1p63 : 0x1p64;
    if (x != x) return kOfNan;
    if (rounded >= kEnd) return Limits::max();
    if (rounded <= static_cast<double>(Limits::min())) return Limits::min();
    return static_cast<To>(rounded);
  }
}
/// Extends a result of 8 or 16 bits to the register.
template <class Value, class To, class Register>
Register float_to_integer(typename Value::Held word) {
  return static_cast<Register>(round_to_integer<To>(Value::of(word)));
}

void decode_float_to_integer(OpcodeCursor &form, Type to) {
  const int mode = need_rounding(form, {"rni", "rzi", "rmi", "rpi"});
  form.take("sat");  // no effect: results are always clamped
  const bool flushes = form.type == Type::kF32 && form.take("ftz");
  const bool has_16_bits = form.decoder.operands().at(0).is_half;
  with_float_source(form, flushes, [&]<class Value>(Value) {
    with_integer_type(form, to, [&](auto type) {
      using To = Native<type>;
      if constexpr (sizeof(To) >= 4)
        decode_elementwise<float_to_integer<Value, To, To>>(form);
      else if (has_16_bits)
        decode_elementwise<float_to_integer<Value, To, int16_t>>(form);
      else
        decode_elementwise<float_to_integer<Value, To, int32_t>>(form);
    });
  });
  set_rounding(form, mode);
}

// ---- Floating point to fp32 and fp64.

/// Converts with the rounding mode of the processor, which is set to that of the instruction.
/// @tparam kIntegral  rounds to an integer
template <class Value, class To, bool kIntegral, bool kFtz, bool kSat>
To to_float(typename Value::Held word) {
  auto x = Value::of(word);
  if (kIntegral) x = std::nearbyint(x);
  To result = static_cast<To>(x);
  if constexpr (kFtz) result = flush(result);
  return canonical(kSat ? saturate(result) : result);
}

template <class Value, class To, bool kIntegral>
void decode_to_float(OpcodeCursor &form, bool flushes) {
  with_flags(
      [&](auto ftz, auto sat) {
        constexpr bool kFtz = ftz && sizeof(To) == 4;
        decode_elementwise<to_float<Value, To, kIntegral, kFtz, sat>>(form);
      },
      flushes, form.take("sat"));
}

// ---- Floating point to halves.

/// Rounds in a direction: rounds to nearest, then corrects a result on the wrong side by one step.
template <class Format, int kMode>
uint32_t narrow_in_mode(float x) {
  const uint32_t nearest = Format::narrow(x);
  if (kMode == FE_TONEAREST) return nearest;
  const float y = Format::widen(nearest);
  const bool negative = nearest & 0x8000;
  const bool outwards = negative ? y < x : y > x, inwards = negative ? y > x : y < x;
  if (kMode == FE_TOWARDZERO || (kMode == FE_UPWARD) == negative) return nearest - outwards;
  return nearest + inwards;
}

template <class Value, class Format, int kMode>
uint32_t to_half(typename Value::Held word) {
  const auto x = Value::of(word);
  if constexpr (sizeof(x) == 8)
    return narrow_in_mode<Format, kMode>(narrow_to_odd(x));
  else
    return narrow_in_mode<Format, kMode>(x);
}

template <class Value, class Format>
void decode_to_half(OpcodeCursor &form) {
  with_number<4>(form.need_any({"rn", "rz", "rm", "rp"}), [&](auto mode) {
    decode_elementwise<to_half<Value, Format, kRoundingModes[mode]>>(form);
  });
}

template <class Format>
uint32_t half_to_integral(uint32_t half) {
  return Format::narrow(std::nearbyint(Format::widen(half & 0xFFFF)));
}

/// Decodes a conversion to the same format, rounded to an integer.
void decode_integral(OpcodeCursor &form, int rounding) {
  const bool flushes = form.type == Type::kF32 && form.take("ftz");
  with_float_source(form, flushes, [&]<class Value>(Value) {
    if constexpr (std::is_same_v<Value, Half<Fp16>>)
      decode_elementwise<half_to_integral<Fp16>>(form);
    else if constexpr (std::is_same_v<Value, Half<Bf16>>)
      decode_elementwise<half_to_integral<Bf16>>(form);
    else
      decode_to_float<Value, decltype(Value::of({})), true>(form, flushes);
  });
  set_rounding(form, rounding);
}

void decode_float_to_float(OpcodeCursor &form, Type to) {
  const int integral = take_rounding(form, -1, {"rni", "rzi", "rmi", "rpi"});
  if (integral >= 0) {
    if (form.type != to) form.decoder.unknown("rounding to an integer");
    return decode_integral(form, integral);
  }
  // .ftz applies to the fp32 side.
  const bool flushes = (form.type == Type::kF32 || to == Type::kF32) && form.take("ftz");
  with_float_source(form, flushes, [&]<class Value>(Value) {
    if (to == Type::kF16) return decode_to_half<Value, Fp16>(form);
    if (to == Type::kBf16) return decode_to_half<Value, Bf16>(form);
    if (to == Type::kF64) return decode_to_float<Value, double, false>(form, false);
    const int rounding = take_rounding(form, FE_TONEAREST);
    decode_to_float<Value, float, false>(form, flushes);
    set_rounding(form, rounding);
  });
}

// ---- Two fp32 to a pair of halves; the first source becomes the upper half.

template <class Format>
uint32_t to_pair(float a, float b) {
  return Format::narrow(a) << 16 | Format::narrow(b);
}
template <class Format>
void decode_to_pair(OpcodeCursor &form) {
  form.need_any({"rn"});
  decode_elementwise<to_pair<Format>>(form);
}

/// Rounds to tf32, an fp32 whose lowest 13 bits are 0, with ties away from zero.
uint32_t to_tf32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return x != x ? kFloatNan : std::fabs(x) == INFINITY ? bits : (bits + 0x1000) & ~0x1FFFu;
}

}  // namespace

void decode_cvt(OpcodeCursor &form) {
  const Type to = form.take_other_type(), from = form.type;
  if (from == Type::kF32 && to == Type::kF16x2) return decode_to_pair<Fp16>(form);
  if (from == Type::kF32 && to == Type::kBf16x2) return decode_to_pair<Bf16>(form);
  if (from == Type::kF32 && to == Type::kTf32) {
    form.need_any({"rna"});
    return decode_elementwise<to_tf32>(form);
  }
  if (is_integer_value(to) && is_integer_value(from)) return decode_integer_to_integer(form, to);
  if (is_float_value(to) && is_integer_value(from)) return decode_integer_to_float(form, to);
  if (is_integer_value(to) && is_float_value(from)) return decode_float_to_integer(form, to);
  if (is_float_value(to) && is_float_value(from)) return decode_float_to_float(form, to);
  form.decoder.unknown("types");
}

}  // namespace softgpu
