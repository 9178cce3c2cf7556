// fp32 and fp64 instructions: PTX ISA, Floating-Point Instructions.
//
// Approximate instructions are computed exactly; hardware results differ in the last bits.
#include <cmath>
#include <type_traits>

#include "softgpu/isa/decode.h"
#include "softgpu/isa/float_value.h"
#include "softgpu/isa/half.h"
#include "softgpu/isa/rounding.h"

namespace softgpu {
namespace {

constexpr auto divide = []<class T>(T a, T b) { return a / b; };
constexpr auto multiply_add = []<class T>(T a, T b, T c) { return std::fma(a, b, c); };
constexpr auto reciprocal = []<class T>(T a) { return 1 / a; };
constexpr auto square_root = []<class T>(T a) { return std::sqrt(a); };

/// Computes a * (1 / b); the reciprocal of a number above 2^126 is zero.
constexpr auto divide_fast = []<class T>(T a, T b) {
  return std::fabs(b) > 0x1p126f ? a * std::copysign(T{0}, b) : a / b;
};
constexpr auto reciprocal_root = []<class T>(T a) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(a)));
};
constexpr auto logarithm = []<class T>(T a) { return std::log2(a); };
constexpr auto sine = []<class T>(T a) { return std::sin(a); };
constexpr auto cosine = []<class T>(T a) { return std::cos(a); };

/// fp64 approximations flush subnormal operands and keep only the upper 32 bits of the result.
template <auto kOp>
double approximate_double(double x) {
  if (std::fabs(x) < 0x1p-1022) x = std::copysign(0.0, x);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(kOp(x)) & 0xFFFFFFFF00000000);
}

/// Decodes add, sub and mul, which round to nearest by default, or fma, which requires a rounding
/// mode.
template <auto kOp, bool kMustSay = false>
void decode_rounded(OpcodeCursor &form) {
  const int rounding = kMustSay ? need_rounding(form) : take_rounding(form, FE_TONEAREST);
  decode_float_op<kOp, true>(form);
  set_rounding(form, rounding);
}

void decode_div(OpcodeCursor &form) {
  const bool is_double = form.type == Type::kF64;
  if (!is_double && form.take("approx")) return decode_single<divide_fast>(form);
  if (!is_double && form.take("full")) return decode_single<divide>(form);
  const int rounding = is_double ? take_rounding(form, FE_TONEAREST) : need_rounding(form);
  decode_float_op<divide>(form);
  set_rounding(form, rounding);
}

/// Decodes an approximation; some also exist in fp64.
template <auto kOp, bool kHasDouble>
void decode_approximation(OpcodeCursor &form) {
  form.need_any({"approx"});
  if (form.type == Type::kF32) return decode_single<kOp>(form);
  if constexpr (kHasDouble) {
    form.need_any({"ftz"});
    decode_elementwise<approximate_double<kOp>>(form);
  } else {
    form.unknown_type();
  }
}
/// Decodes rsqrt.  Without .ftz, the fp64 instruction is exact.
void decode_rsqrt(OpcodeCursor &form) {
  if (form.type == Type::kF32 || form.decoder.has("ftz"))
    return decode_approximation<reciprocal_root, true>(form);
  form.need_any({"approx"});
  decode_float_op<reciprocal_root>(form);
}
/// rcp and sqrt: approximate or rounded.
template <auto kOp, bool kHasDouble>
void decode_root(OpcodeCursor &form) {
  const int rounding = take_rounding(form, -1);
  if (rounding < 0) return decode_approximation<kOp, kHasDouble>(form);
  decode_float_op<kOp>(form);
  set_rounding(form, rounding);
}

template <auto kOp>
void decode_extremum(OpcodeCursor &form) {
  if (form.type == Type::kF32 && form.take("NaN")) return decode_single<or_nan<kOp>>(form);
  decode_float_op<kOp>(form);
}

// abs, neg and copysign operate on bits, also for a NaN.

template <class W>
constexpr W kSign = W{1} << (8 * sizeof(W) - 1);

constexpr auto clear_sign = []<class W>(W a) { return a & ~kSign<W>; };
constexpr auto flip_sign = []<class W>(W a) { return a ^ kSign<W>; };
/// Returns the magnitude of b with the sign of a.
constexpr auto copy_sign = []<class W>(W a, W b) { return (a & kSign<W>) | (b & ~kSign<W>); };
template <auto kOp>
uint32_t flushed(uint32_t a) {
  return kOp(std::bit_cast<uint32_t>(flush(std::bit_cast<float>(a))));
}

template <auto kOp>
void decode_sign(OpcodeCursor &form) {
  if (form.type == Type::kF64) return decode_elementwise<kOp, uint64_t>(form);
  if constexpr (std::is_invocable_v<decltype(kOp), uint32_t>)
    if (form.take("ftz")) return decode_elementwise<flushed<kOp>>(form);
  decode_elementwise<kOp, uint32_t>(form);
}

constexpr OpcodeEntry kOpcodes[] = {
    {"abs", decode_sign<clear_sign>},
    {"add", decode_rounded<add>},
    {"copysign", decode_sign<copy_sign>},
    {"cos", decode_approximation<cosine, false>},
    {"div", decode_div},
    {"ex2", decode_approximation<power_of_two, false>},
    {"fma", decode_rounded<multiply_add, true>},
    {"lg2", decode_approximation<logarithm, false>},
    {"max", decode_extremum<maximum>},
    {"min", decode_extremum<minimum>},
    {"mul", decode_rounded<multiply>},
    {"neg", decode_sign<flip_sign>},
    {"rcp", decode_root<reciprocal, true>},
    {"rsqrt", decode_rsqrt},
    {"sin", decode_approximation<sine, false>},
    {"sqrt", decode_root<square_root, false>},
    {"sub", decode_rounded<subtract>},
    {"tanh", decode_approximation<hyperbolic_tangent, false>},
};
static_assert(is_sorted(kOpcodes));

}  // namespace

bool decode_float(OpcodeCursor &form) {
  return decode_by(kOpcodes, form);
}

// ---- fp16, bf16 and pairs of them

namespace halves {

// Sums and products of two halves may be rounded to fp32 and then to 16 bits, because fp32 has more
// than twice the significant bits.  The sum of a product and a half must be rounded to odd first.

template <class Format>
constexpr auto multiply_add_half = []<class T>(T a, T b, T c) {
  // A product of two fp16 is exact in fp32; a product of two bf16 may overflow or underflow fp32.
  if constexpr (std::is_same_v<Format, Fp16>) return add_to_odd(a * b, c);
  return narrow_to_odd(add_to_odd(static_cast<double>(a) * b, static_cast<double>(c)));
};

enum class Clamp { kNone, kSat, kRelu };

/// An operation on the lower halves of registers, and on both halves.
template <auto kOp, class Format, Clamp kClamp, class Signature = SignatureOf<kOp, float>>
struct HalfOp;
template <auto kOp, class Format, Clamp kClamp, class... A>
struct HalfOp<kOp, Format, kClamp, float (*)(A...)> {
  template <class>
  using Register = uint32_t;

  static uint32_t one(Register<A>... registers) {
    float x = kOp(Format::widen(registers & 0xFFFF)...);
    if (kClamp == Clamp::kSat) x = saturate(x);
    if (kClamp == Clamp::kRelu) x = x < 0 ? 0 : x;
    return Format::narrow(x);
  }
  static uint32_t two(Register<A>... registers) {
    return one(registers...) | one((registers >> 16)...) << 16;
  }
};
/// abs and neg modify the sign bits, also of a NaN.
template <bool kAbs, uint32_t kSigns>
uint32_t modify_signs(uint32_t a) {
  return kAbs ? a & ~kSigns : a ^ kSigns;
}

bool is_bf16(const OpcodeCursor &form) {
  return form.type == Type::kBf16 || form.type == Type::kBf16x2;
}

template <class Operation>
void decode_operation(OpcodeCursor &form) {
  if (is_pair(form.type))
    decode_elementwise<Operation::two>(form);
  else
    decode_elementwise<Operation::one>(form);
}
template <auto kOp, Clamp kClamp = Clamp::kNone, auto kOpOfBf16 = kOp>
void decode_op(OpcodeCursor &form) {
  if (is_bf16(form))
    decode_operation<HalfOp<kOpOfBf16, Bf16, kClamp>>(form);
  else
    decode_operation<HalfOp<kOp, Fp16, kClamp>>(form);
}
/// bf16 has no .sat.
template <auto kOp, auto kOpOfBf16 = kOp>
void decode_basic(OpcodeCursor &form) {
  form.take("rn");
  if (!is_bf16(form) && form.take("sat")) return decode_op<kOp, Clamp::kSat>(form);
  decode_op<kOp, Clamp::kNone, kOpOfBf16>(form);
}
void decode_fma(OpcodeCursor &form) {
  constexpr auto kFp16 = multiply_add_half<Fp16>;
  constexpr auto kBf16 = multiply_add_half<Bf16>;
  form.need_any({"rn"});
  if (form.take("relu")) return decode_op<kFp16, Clamp::kRelu, kBf16>(form);
  decode_basic<kFp16, kBf16>(form);
}
template <auto kOp>
void decode_extremum(OpcodeCursor &form) {
  if (form.take("NaN")) return decode_op<or_nan<kOp>>(form);
  decode_op<kOp>(form);
}
void decode_tanh(OpcodeCursor &form) {
  form.need_any({"approx"});
  decode_op<hyperbolic_tangent>(form);
}
template <bool kAbs>
void decode_sign(OpcodeCursor &form) {
  if (is_pair(form.type))
    decode_elementwise<modify_signs<kAbs, 0x80008000>>(form);
  else
    decode_elementwise<modify_signs<kAbs, 0x8000>>(form);
}

constexpr OpcodeEntry kOpcodes[] = {
    {"abs", decode_sign<true>},
    {"add", decode_basic<add>},
    {"fma", decode_fma},
    {"max", decode_extremum<maximum>},
    {"min", decode_extremum<minimum>},
    {"mul", decode_basic<multiply>},
    {"neg", decode_sign<false>},
    {"sub", decode_basic<subtract>},
    {"tanh", decode_tanh},
};
static_assert(is_sorted(kOpcodes));

}  // namespace halves

bool decode_half(OpcodeCursor &form) {
  return decode_by(halves::kOpcodes, form);
}

}  // namespace softgpu
