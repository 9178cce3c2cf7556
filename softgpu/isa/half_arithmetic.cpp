// fp16 and bf16 instructions, with one or two values per register: PTX ISA, Half Precision
// Floating-Point Instructions.
//
// Results are computed in fp32 and rounded once to 16 bits.
#include <cmath>
#include <type_traits>

#include "softgpu/isa/arithmetic.h"
#include "softgpu/isa/float_value.h"
#include "softgpu/isa/half.h"
#include "softgpu/isa/round_to_odd.h"

namespace softgpu {
namespace {

// Sums and products of two halves may be rounded to fp32 and then to 16 bits, because fp32 has more
// than twice the significant bits.  The sum of a product and a half must be rounded to odd first.

template <class Format>
constexpr auto multiply_add_half = []<class T>(T a, T b, T c) {
  // A product of two fp16 is exact in fp32; a product of two bf16 may overflow or underflow fp32.
  if constexpr (std::is_same_v<Format, Fp16>) return add_to_odd(a * b, c);
  return narrow_to_odd(add_to_odd(static_cast<double>(a) * b, static_cast<double>(c)));
};

enum class Clamp { kNone, kSat, kRelu };

template <class Format, bool kFtz>
uint32_t flushed(uint32_t half) {
  return kFtz ? flush_half<Format>(half) : half;
}
/// An operation on the lower halves of registers, and on both halves.
template <auto kOp, class Format, bool kFtz, Clamp kClamp,
          class Signature = SignatureOf<kOp, float>>
struct HalfOp;
template <auto kOp, class Format, bool kFtz, Clamp kClamp, class... A>
struct HalfOp<kOp, Format, kFtz, kClamp, float (*)(A...)> {
  template <class>
  using Register = uint32_t;

  static uint32_t one(Register<A>... registers) {
    float x = kOp(Format::widen(flushed<Format, kFtz>(registers & 0xFFFF))...);
    if (kClamp == Clamp::kSat) x = saturate(x);
    if (kClamp == Clamp::kRelu) x = x < 0 ? 0 : x;
    return flushed<Format, kFtz>(Format::narrow(x));
  }
  static uint32_t two(Register<A>... registers) {
    return one(registers...) | one((registers >> 16)...) << 16;
  }
};
/// abs and neg modify the sign bit, also of a NaN.
template <bool kAbs, bool kFtz>
struct SignOp {
  static uint32_t one(uint32_t a) {
    const uint32_t half = flushed<Fp16, kFtz>(a & 0xFFFF);
    return kAbs ? half & 0x7FFF : half ^ 0x8000;
  }
  static uint32_t two(uint32_t a) { return one(a) | one(a >> 16) << 16; }
};

bool is_bf16(const OpcodeCursor &form) {
  return form.type == Type::kBf16 || form.type == Type::kBf16x2;
}

template <class Operation>
void decode_operation(OpcodeCursor &form) {
  if (form.type == Type::kF16x2 || form.type == Type::kBf16x2)
    decode_elementwise<Operation::two>(form);
  else
    decode_elementwise<Operation::one>(form);
}
/// bf16 has neither .ftz nor .sat.
template <auto kOp, Clamp kClamp = Clamp::kNone, auto kOpOfBf16 = kOp>
void decode_op(OpcodeCursor &form) {
  if (is_bf16(form)) return decode_operation<HalfOp<kOpOfBf16, Bf16, false, kClamp>>(form);
  with_flags([&](auto ftz) { decode_operation<HalfOp<kOp, Fp16, ftz, kClamp>>(form); },
             form.take("ftz"));
}

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
void decode_ex2(OpcodeCursor &form) {
  form.need_any({"approx"});
  if (!is_bf16(form))
    return decode_operation<HalfOp<power_of_two, Fp16, false, Clamp::kNone>>(form);
  // For bf16, only the variant with .ftz exists.
  form.need_any({"ftz"});
  decode_operation<HalfOp<power_of_two, Bf16, true, Clamp::kNone>>(form);
}
void decode_tanh(OpcodeCursor &form) {
  form.need_any({"approx"});
  decode_op<hyperbolic_tangent>(form);
}
template <bool kAbs>
void decode_sign(OpcodeCursor &form) {
  with_flags([&](auto ftz) { decode_operation<SignOp<kAbs, ftz>>(form); },
             !is_bf16(form) && form.take("ftz"));
}

constexpr OpcodeEntry kOpcodes[] = {
    {"abs", decode_sign<true>},
    {"add", decode_basic<add>},
    {"ex2", decode_ex2},
    {"fma", decode_fma},
    {"max", decode_extremum<maximum>},
    {"min", decode_extremum<minimum>},
    {"mul", decode_basic<multiply>},
    {"neg", decode_sign<false>},
    {"sub", decode_basic<subtract>},
    {"tanh", decode_tanh},
};
static_assert(is_sorted(kOpcodes));

}  // namespace

bool decode_half(OpcodeCursor &form) {
  return decode_by(kOpcodes, form);
}

}  // namespace softgpu
